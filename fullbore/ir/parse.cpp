#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>

#include "fullbore/base/text.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"

namespace fullbore {
namespace {

// A parse error unwinds to parse_graph, which turns it into a Failure; it never leaves this file.
struct ParseError {
  int line;
  std::string message;
};

// Bodies nest by recursion: a bound keeps hostile text from exhausting the stack.
constexpr int kMaximumDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph parse() {
    Graph graph = parse_graph(0);
    skip_space();
    if (position_ != text_.size()) fail("expected the end of the text");
    const std::string problem = verify(graph);
    if (!problem.empty()) fail(problem);
    return graph;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw ParseError{line_, message}; }

  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  void skip_space() {
    while (position_ < text_.size()) {
      const char character = text_[position_];
      if (character == '\n') ++line_;
      if (character != ' ' && character != '\n' && character != '\t' && character != '\r') break;
      ++position_;
    }
  }

  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected '{}'", token));
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::string word() {
    skip_space();
    const size_t start = position_;
    while (is_word(peek())) ++position_;
    if (start == position_) fail("expected a name");
    return std::string(text_.substr(start, position_ - start));
  }

  std::string quoted() {
    expect("\"");
    std::string result;
    while (peek() != '"') {
      if (position_ >= text_.size() || peek() == '\n') fail("a quoted name is not closed");
      if (peek() == '\\') {
        ++position_;
        result += peek() == 'n' ? '\n' : peek();
      } else {
        result += peek();
      }
      ++position_;
    }
    ++position_;
    return result;
  }

  std::string number_text() {
    skip_space();
    const size_t start = position_;
    while (is_word(peek()) || peek() == '-' || peek() == '+' || peek() == '.') ++position_;
    return std::string(text_.substr(start, position_ - start));
  }

  static std::optional<int64_t> as_integer(const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
    return value;
  }

  static std::optional<double> as_double(const std::string& text) {
    if (text.empty() || text.size() > 64) return {};
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size()) return {};
    return value;
  }

  int64_t integer() {
    const std::string text = number_text();
    const auto value = as_integer(text);
    if (!value) fail(fmt::format("expected an integer, found '{}'", text));
    return *value;
  }

  double real() {
    const std::string text = number_text();
    const auto value = as_double(text);
    if (!value) fail(fmt::format("expected a number, found '{}'", text));
    return *value;
  }

  template <class Element>
  auto list(Element element) {
    std::vector<decltype(element())> result;
    if (accept("]")) return result;
    do result.push_back(element());
    while (accept(","));
    expect("]");
    return result;
  }

  TensorType type() {
    const std::string name = word();
    const auto dtype = parse_dtype(name);
    if (!dtype) fail(fmt::format("unknown dtype '{}'", name));
    expect("[");
    auto dims = list([&] { return integer(); });
    double elements = 1;
    for (int64_t extent : dims) {
      if (extent < 0) fail("a negative extent");
      elements *= static_cast<double>(extent);
    }
    if (elements > 0x1p48) fail("a shape of more than 2^48 elements");
    return {*dtype, Shape(std::move(dims))};
  }

  Attributes::Value attribute_value() {
    skip_space();
    if (peek() == '"') return quoted();
    if (accept("[")) return list([&] { return integer(); });
    if (accept("f[")) return list([&] { return real(); });
    const std::string text = number_text();
    if (text == "true") return true;
    if (text == "false") return false;
    if (const auto dtype = parse_dtype(text)) return *dtype;
    if (const auto value = as_integer(text)) return *value;
    if (const auto value = as_double(text)) return *value;
    fail(fmt::format("'{}' is no attribute value", text));
  }

  Attributes attributes() {
    Attributes result;
    if (!accept("{")) return result;
    do {
      const std::string name = word();
      expect("=");
      result.set(name, attribute_value());
    } while (accept(","));
    expect("}");
    return result;
  }

  int64_t value_name() {
    expect("%");
    return integer();
  }

  Value lookup(const std::map<int64_t, Value>& values) {
    const int64_t name = value_name();
    const auto found = values.find(name);
    if (found == values.end()) fail(fmt::format("%{} is used before it is made", name));
    return found->second;
  }

  void define(std::map<int64_t, Value>& values, int64_t name, Value value) {
    if (!values.emplace(name, value).second) fail(fmt::format("%{} is made twice", name));
  }

  Role role() {
    const std::string name = word();
    for (Role candidate : {Role::batch, Role::parameter, Role::frozen, Role::moment, Role::ema,
                           Role::control, Role::recurrent, Role::derived, Role::local})
      if (role_name(candidate) == name) return candidate;
    fail(fmt::format("unknown role '{}'", name));
  }

  // Behind "of": "w" {dtype=bf16, columns=32, depth=2, transposed=true}
  DerivedWeight derived_weight() {
    DerivedWeight derived{.parameter = quoted()};
    const Attributes how = attributes();
    if (how.has("dtype")) derived.dtype = attribute<DType>(how, "dtype");
    if (how.has("columns"))
      derived.packing =
          Packing{attribute<bool>(how, "transposed"), attribute<int64_t>(how, "columns"),
                  attribute<int64_t>(how, "depth")};
    if (how.has("scales")) derived.scales = attribute<bool>(how, "scales");
    return derived;
  }

  template <class T>
  T attribute(const Attributes& attributes, std::string_view name) {
    for (const Attributes::Entry& entry : attributes.entries())
      if (const T* const value = std::get_if<T>(&entry.value); value && entry.name == name)
        return *value;
    fail(fmt::format("a derived weight has no such {}", name));
  }

  // "# models/example.cpp:88 @ layers.0", to the end of the line.
  void origin(std::string& location, std::string& scope) {
    while (peek() == ' ') ++position_;
    if (peek() != '#') return;
    ++position_;
    const size_t end = std::min(text_.find('\n', position_), text_.size());
    std::string_view comment = text_.substr(position_, end - position_);
    position_ = end;
    const auto trim = [](std::string_view part) {
      while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
      while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
      return std::string(part);
    };
    const size_t at = comment.find('@');
    location = trim(comment.substr(0, at));
    if (at != std::string_view::npos) scope = trim(comment.substr(at + 1));
  }

  void parse_node(Graph& graph, std::map<int64_t, Value>& values, std::vector<int64_t> names,
                  int depth) {
    const std::string op_name = word();
    const OpDef* op = find_op(op_name);
    if (!op) {
      std::vector<std::string> known;
      for (const OpDef* each : all_ops()) known.emplace_back(each->name);
      fail(fmt::format("unknown op '{}'.{}", op_name, did_you_mean(op_name, known)));
    }
    Node like;
    expect("(");
    if (!accept(")")) {
      do like.inputs.push_back(lookup(values));
      while (accept(","));
      expect(")");
    }
    like.attributes = attributes();
    expect(":");
    std::vector<TensorType> types;
    if (!names.empty()) {
      do types.push_back(type());
      while (accept(","));
    }
    if (op->is(Tag::region)) {
      expect("{");
      like.body = std::make_shared<const Graph>(parse_graph(depth + 1));
      expect("}");
    }
    origin(like.location, like.scope);
    try {
      const Node& node = graph.add_node_like(like, *op, like.inputs, like.attributes, like.body);
      if (node.outputs.size() != names.size() || types.size() != names.size())
        fail(fmt::format("{} makes {} values, {} are named", op_name, node.outputs.size(),
                         names.size()));
      for (size_t i = 0; i < names.size(); ++i) {
        define(values, names[i], node.outputs[i]);
        if (graph.type(node.outputs[i]) != types[i])
          fail(fmt::format("{} gives {}, the text says {}", op_name,
                           graph.type(node.outputs[i]).text(), types[i].text()));
      }
    } catch (const UsageError& error) {
      fail(error.what());
    }
  }

  Graph parse_graph(int depth) {
    if (depth > kMaximumDepth) fail("bodies are nested too deeply");
    expect("graph");
    Graph graph(quoted());
    expect("{");
    std::map<int64_t, Value> values;
    while (!accept("}")) {
      if (accept("output")) {
        const std::string name = quoted();
        const Value value = lookup(values);
        graph.add_output(name, value, accept("updates") ? static_cast<int>(integer()) : -1);
        continue;
      }
      std::vector<int64_t> names;
      do names.push_back(value_name());
      while (accept(","));
      expect("=");
      if (accept("input")) {
        if (names.size() != 1) fail("an input is one value");
        const std::string name = quoted();
        Graph::Input input{name, role(), {}};
        if (input.role == Role::derived) expect("of");
        if (input.role == Role::derived || (input.role == Role::frozen && accept("of")))
          input.derived = derived_weight();
        expect(":");
        define(values, names[0], graph.add_input_like(input, type()));
      } else {
        parse_node(graph, values, names, depth);
      }
    }
    return graph;
  }

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text) {
  try {
    return Parser(text).parse();
  } catch (const ParseError& error) {
    return Failure{fmt::format("graph text, line {}: {}", error.line, error.message)};
  }
}

}  // namespace fullbore

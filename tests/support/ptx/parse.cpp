#include "tests/support/ptx/parse.h"
#include "tests/support/ptx/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>
#include <set>
#include <tuple>

namespace fullbore::ptx {
namespace {

constexpr std::pair<std::string_view, Special> kSpecials[] = {
    {"%tid.x", Special::tid_x},
    {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::lane},
    {"%warpid", Special::warp},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%cluster_ctarank", Special::cluster_rank}};

/// A variable that is declared: ".shared .align 16 .b8 name[128] = {1, 2}".
struct Variable {
  std::string name;
  Space space = Space::generic;
  int64_t alignment = 1;
  int64_t bytes = 0;
  bool is_open = false;  ///< name[]: as large as the launch says
  std::vector<std::byte> contents;
};

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

class Parser {
 public:
  Parser(const std::string& text, const std::function<uint64_t(GlobalVariable&)>& place)
      : tokens_(text), place_(place) {
    for (const std::string_view line : split(text, '\n')) lines_.emplace_back(line);
  }

  Module parse() {
    while (!tokens_.at_end()) directive();
    return std::move(module_);
  }

 private:
  void directive() {
    const std::string_view word = tokens_.take();
    if (word == ".version" || word == ".address_size") {
      tokens_.take();
    } else if (word == ".target") {
      module_.target = tokens_.take();
      while (tokens_.take_if(",")) tokens_.take();
    } else if (word == ".visible" || word == ".extern" || word == ".weak") {
    } else if (word == ".entry") {
      kernel();
    } else if (word == ".func") {
      external();
    } else if (word == ".global" || word == ".const" || word == ".shared") {
      const Variable made = variable(word);
      if (made.space == Space::shared)
        module_shared_.push_back(made);
      else
        add_global(made);
    } else if (word == ".file" || word == ".pragma") {
      while (!tokens_.at_end() && tokens_.line() == line_of_last_) tokens_.take();
    } else {
      tokens_.fail(fmt::format("'{}' is not known here", word));
    }
    line_of_last_ = tokens_.line();
  }

  // ".extern .func name (.param .b64 a, .param .b32 b);"
  void external() {
    externals_.emplace(tokens_.take());
    tokens_.expect("(");
    while (!tokens_.take_if(")")) {
      tokens_.expect(".param");
      variable(".param");
      tokens_.take_if(",");
    }
    tokens_.expect(";");
  }

  void add_global(const Variable& made) {
    GlobalVariable variable{made.name, made.alignment, made.contents, 0};
    variable.contents.resize(static_cast<size_t>(made.bytes));
    if (!place_) tokens_.fail(fmt::format("nobody says where '{}' lies", made.name));
    variable.address = place_(variable);
    addresses_[made.name] = variable.address;
    module_.variables.push_back(std::move(variable));
  }

  int64_t integer() {
    const std::optional<uint64_t> value = number_of(tokens_.peek());
    if (!value) tokens_.fail(fmt::format("a number was expected, not '{}'", tokens_.peek()));
    tokens_.take();
    return static_cast<int64_t>(*value);
  }

  // Behind its state space.
  Variable variable(std::string_view space) {
    Variable made;
    made.space = space == ".shared"  ? Space::shared
                 : space == ".local" ? Space::local
                 : space == ".param" ? Space::parameter
                                     : Space::global;
    std::optional<Type> type;
    for (;;) {
      if (tokens_.take_if(".align")) {
        made.alignment = integer();
      } else if (tokens_.peek().starts_with('.')) {
        type = type_of(tokens_.peek().substr(1));
        if (!type) tokens_.fail(fmt::format("'{}' is no type", tokens_.peek()));
        tokens_.take();
        // ".ptr .global .align 4": what a parameter points to.
        if (tokens_.take_if(".ptr")) {
          while (tokens_.peek().starts_with('.'))
            if (tokens_.take() == ".align") integer();
        }
      } else {
        break;
      }
    }
    if (!type) tokens_.fail("a type was expected");
    made.name = tokens_.take();
    const int64_t each = type->bits / 8;
    made.bytes = each;
    made.alignment = std::max(made.alignment, each);
    while (tokens_.take_if("[")) {
      if (tokens_.take_if("]")) {
        made.is_open = true;
        made.bytes = 0;
        continue;
      }
      made.bytes *= integer();
      tokens_.expect("]");
    }
    if (tokens_.take_if("=")) initializer(made, each);
    if (space != ".param") tokens_.expect(";");
    return made;
  }

  void initializer(Variable& made, int64_t each) {
    const auto value = [&] {
      const auto bits = static_cast<uint64_t>(integer());
      const auto* const begin = reinterpret_cast<const std::byte*>(&bits);
      made.contents.insert(made.contents.end(), begin, begin + each);
    };
    if (!tokens_.take_if("{")) return value();
    while (!tokens_.take_if("}")) {
      value();
      tokens_.take_if(",");
    }
  }

  void kernel() {
    kernel_ = {};
    registers_.clear();
    constants_.clear();
    specials_.clear();
    labels_.clear();
    branches_.clear();
    shared_ = local_ = 0;
    names_.clear();
    passed_.clear();
    kernel_.name = tokens_.take();
    dynamic_is_placed_ = false;
    for (const Variable& each : module_shared_)
      if (!each.is_open) place_in_kernel(each);
    if (tokens_.take_if("(")) {
      while (!tokens_.take_if(")")) {
        tokens_.expect(".param");
        const Variable made = variable(".param");
        const int64_t offset = round_up(kernel_.parameter_bytes, made.alignment);
        kernel_.parameters.push_back({made.name, offset, made.bytes});
        kernel_.parameter_bytes = offset + made.bytes;
        tokens_.take_if(",");
      }
    }
    promises();
    while (!tokens_.take_if("}")) statement();
    for (const auto& [index, label, line] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end())
        throw Fault(fmt::format("PTX, line {}: no label '{}'", line, label));
      kernel_.code[index].target = found->second;
    }
    for (const auto& [value, slot] : constants_) kernel_.constants.push_back({slot, value});
    for (const auto& [special, slot] : specials_) kernel_.specials.push_back({slot, special});
    kernel_.shared_bytes = shared_;
    kernel_.local_bytes = local_;
    kernel_.text = lines_;
    module_.kernels[kernel_.name] = std::move(kernel_);
  }

  // ".maxntid 256, 1, 1" and others, up to the body. ".explicitcluster" says no more than that there are clusters.
  void promises() {
    bool is_explicit = false;
    while (!tokens_.take_if("{")) {
      if (tokens_.at_end()) tokens_.fail("a kernel without a body");
      const std::string_view word = tokens_.take();
      is_explicit |= word == ".explicitcluster";
      if (word == ".maxntid") {
        kernel_.most_threads = integer();
        while (tokens_.take_if(",")) kernel_.most_threads *= integer();
      }
      if (word != ".reqnctapercluster") continue;
      const int64_t blocks = integer();
      kernel_.cluster = static_cast<uint32_t>(blocks);
      kernel_.has_clocks = true;
      bool is_line = blocks >= 1 && blocks <= 8;
      while (tokens_.take_if(",")) is_line &= integer() == 1;
      if (!is_line) tokens_.fail("a cluster is of 1 to 8 blocks, beside one another along x");
    }
    if (is_explicit && !kernel_.has_clocks) tokens_.fail("a cluster of a size that is not said");
  }

  void place_in_kernel(const Variable& made) {
    if (made.space == Space::shared && dynamic_is_placed_)
      tokens_.fail("shared memory of fixed size behind a use of what begins at its end");
    int64_t& end = made.space == Space::shared ? shared_ : local_;
    end = round_up(end, made.alignment);
    names_[made.name] = static_cast<uint64_t>(end);
    end += made.bytes;
  }

  void statement() {
    const std::string_view word = tokens_.peek();
    if (word.empty()) tokens_.fail("a kernel does not end");
    if (word == ".reg") {
      tokens_.take();
      declare_registers();
    } else if (word == ".shared" || word == ".local") {
      tokens_.take();
      place_in_kernel(variable(word));
    } else if (word == ".param") {
      tokens_.take();
      Variable made = variable(word);
      made.space = Space::local;
      place_in_kernel(made);
      passed_.insert(made.name);
      tokens_.expect(";");
    } else if (word == ".pragma") {
      while (tokens_.take() != ";") {
      }
    } else if (word == ".loc") {
      const int line = tokens_.line();
      while (tokens_.line() == line) tokens_.take();
    } else if (word == "{") {
      tokens_.take();  // a block of inline assembly: its registers have names of their own
      while (!tokens_.take_if("}")) statement();
    } else if (tokens_.peek(1) == ":") {
      labels_[std::string(tokens_.take())] = static_cast<int>(kernel_.code.size());
      tokens_.take();
    } else {
      instruction();
    }
  }

  // ".reg .f32 %f<12>;" or ".reg .pred p, q;": a slot each.
  void declare_registers() {
    tokens_.take();
    do {
      const std::string name(tokens_.take());
      int64_t count = 1;
      const bool is_range = tokens_.take_if("<");
      if (is_range) {
        count = integer();
        tokens_.expect(">");
      }
      for (int64_t i = 0; i < count; ++i)
        registers_[is_range ? name + std::to_string(i) : name] = kernel_.slots++;
    } while (tokens_.take_if(","));
    tokens_.expect(";");
  }

  int constant(uint64_t value) {
    const auto [found, is_new] = constants_.try_emplace(value, kernel_.slots);
    if (is_new) ++kernel_.slots;
    return found->second;
  }

  int slot_of(std::string_view text) {
    if (const auto found = registers_.find(text); found != registers_.end()) return found->second;
    for (const auto& [name, special] : kSpecials)
      if (name == text) {
        const auto [found, is_new] = specials_.try_emplace(special, kernel_.slots);
        if (is_new) ++kernel_.slots;
        return found->second;
      }
    if (const std::optional<uint64_t> value = number_of(text)) return constant(*value);
    if (const std::optional<uint64_t> address = address_of(text)) return constant(*address);
    if (text == "_") return kernel_.slots++;  // a result that nobody wants
    tokens_.fail(fmt::format("'{}' is not declared", text));
  }

  // Shared memory of dynamic size begins where that of fixed size ends: it is placed when it is first used. Assemblers are
  // known to align it to 16 bytes alone where there is some before it (NVIDIA/cccl#5122).
  void place_dynamic(std::string_view name) {
    for (const Variable& each : module_shared_)
      if (each.is_open && each.name == name && !names_.contains(name)) {
        dynamic_is_placed_ = false;  // a second name is of the same bytes
        if (each.alignment > 16 && shared_ > 0)
          tokens_.fail(
              fmt::format("dynamic shared memory aligned to {} bytes behind some of fixed size",
                          each.alignment));
        place_in_kernel(each);
        dynamic_is_placed_ = true;
      }
  }

  std::optional<uint64_t> address_of(std::string_view name) {
    place_dynamic(name);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (const auto found = addresses_.find(name); found != addresses_.end()) return found->second;
    for (const Kernel::Parameter& each : kernel_.parameters)
      if (each.name == name) return static_cast<uint64_t>(each.offset);
    return std::nullopt;
  }

  // "[%rd1+-16]", "[name]", "[name+4]"; of boxes of tensors "[map, {%r1, %r2, %r3}]".
  void address(Instruction& made) {
    std::string_view base = tokens_.take();
    is_passed_ = passed_.contains(base);
    // "%rd1+-16" comes as "%rd1", "+", "-16".
    made.slots[static_cast<size_t>(made.operands++)] = slot_of(base);
    int64_t offset = 0;
    while (!tokens_.take_if("]")) {
      if (tokens_.take_if(",")) {
        if (tokens_.peek() != "{") tokens_.fail("coordinates were expected");
        operand(made);
        continue;
      }
      tokens_.take_if("+");
      offset += integer();
    }
    if (addresses_met_ > 1 && offset != 0) tokens_.fail("an offset of a third address");
    if (addresses_met_ < 2) (addresses_met_ == 0 ? made.offset : made.second_offset) = offset;
    ++addresses_met_;
  }

  void operand(Instruction& made) {
    if (made.operands >= static_cast<int>(made.slots.size())) tokens_.fail("too many operands");
    if (tokens_.take_if("[")) return address(made);
    if (tokens_.peek() == "{") {
      if (made.operands == 0) made.variant = 1;  // mov.b32 {a, b}, c takes c apart
      tokens_.take();
      while (!tokens_.take_if("}")) {
        operand(made);
        tokens_.take_if(",");
      }
      return;
    }
    made.slots[static_cast<size_t>(made.operands++)] = slot_of(tokens_.take());
    if (tokens_.take_if("|"))  // setp.lt.s32 p|q, a, b: and its contrary
      made.slots[static_cast<size_t>(made.operands++)] = slot_of(tokens_.take());
  }

  // "{%f1, %f2}," of a product of a warpgroup: more than other instructions have.
  void sums(Instruction& made) {
    tokens_.expect("{");
    while (!tokens_.take_if("}")) {
      made.sums.push_back(slot_of(tokens_.take()));
      tokens_.take_if(",");
    }
    tokens_.expect(",");
  }

  // "call.uni name, (param0, param1);"
  void call(Instruction& made) {
    const std::string name(tokens_.take());
    made.execute = driver_function(name);
    if (!externals_.contains(name) || made.execute == nullptr)
      tokens_.fail(fmt::format("the function '{}' is not known", name));
    tokens_.expect(",");
    tokens_.expect("(");
    while (!tokens_.take_if(")")) {
      operand(made);
      tokens_.take_if(",");
    }
    tokens_.expect(";");
  }

  void instruction() {
    Instruction made;
    addresses_met_ = 0;
    is_passed_ = false;
    made.line = tokens_.line();
    if (tokens_.take_if("@")) {
      made.guard_negated = tokens_.take_if("!");
      made.guard = slot_of(tokens_.take());
    }
    const std::string opcode(tokens_.take());
    const std::vector<std::string_view> words = split(opcode, '.');
    if (words[0] == "bra") {
      branches_.emplace_back(kernel_.code.size(), std::string(tokens_.take()), made.line);
      tokens_.expect(";");
    } else if (words[0] == "call") {
      call(made);
      kernel_.code.push_back(made);
      return;
    } else {
      if (opcode.starts_with("wgmma.mma_async")) sums(made);
      while (!tokens_.take_if(";")) {
        operand(made);
        if (tokens_.peek() != ";") tokens_.expect(",");
      }
    }
    made.results = 0;
    if (!decode(words, made))
      throw Fault(
          fmt::format("PTX, line {}: the instruction '{}' is not known", made.line, opcode));
    if (is_passed_ && made.space == Space::parameter) made.space = Space::local;
    kernel_.has_clocks |= words[0] == "wgmma" || words[0] == "mbarrier" ||
                          (words[0] == "barrier" && words[1] == "cluster");
    kernel_.code.push_back(made);
  }

  Tokens tokens_;
  const std::function<uint64_t(GlobalVariable&)>& place_;
  std::vector<std::string> lines_;
  Module module_;
  std::vector<Variable> module_shared_;
  bool dynamic_is_placed_ = false;
  std::map<std::string, uint64_t, std::less<>> addresses_;  ///< of global variables
  int line_of_last_ = 0;
  std::set<std::string, std::less<>> externals_;  ///< functions that are declared
  // Of the instruction.
  int addresses_met_ = 0;
  bool is_passed_ = false;  ///< is its address where a call finds what it is passed?
  // Of the kernel.
  Kernel kernel_;
  std::map<std::string, int, std::less<>> registers_;
  std::map<uint64_t, int> constants_;
  std::map<Special, int> specials_;
  std::map<std::string, int, std::less<>> labels_;
  std::map<std::string, uint64_t, std::less<>> names_;  ///< of shared and local variables
  std::set<std::string, std::less<>> passed_;           ///< of those the ones that calls are passed
  std::vector<std::tuple<size_t, std::string, int>> branches_;
  int64_t shared_ = 0, local_ = 0;
};

}  // namespace

std::optional<Type> type_of(std::string_view word) {
  using Kind = Type::Kind;
  static const std::map<std::string_view, Type> known = {
      {"b1", {Kind::bits, 8}},          {"b8", {Kind::bits, 8}},
      {"b16", {Kind::bits, 16}},        {"b32", {Kind::bits, 32}},
      {"b64", {Kind::bits, 64}},        {"b128", {Kind::bits, 128}},
      {"u8", {Kind::is_unsigned, 8}},   {"u16", {Kind::is_unsigned, 16}},
      {"u32", {Kind::is_unsigned, 32}}, {"u64", {Kind::is_unsigned, 64}},
      {"s8", {Kind::is_signed, 8}},     {"s16", {Kind::is_signed, 16}},
      {"s32", {Kind::is_signed, 32}},   {"s64", {Kind::is_signed, 64}},
      {"f16", {Kind::real, 16}},        {"f32", {Kind::real, 32}},
      {"f64", {Kind::real, 64}},        {"f16x2", {Kind::real, 16, 2}},
      {"bf16", {Kind::bf16, 16}},       {"bf16x2", {Kind::bf16, 16, 2}},
      {"tf32", {Kind::tf32, 32}},       {"pred", {Kind::predicate, 8}},
      {"e4m3x2", {Kind::e4m3, 8, 2}},   {"e5m2x2", {Kind::e5m2, 8, 2}}};
  const auto found = known.find(word);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

Module parse(const std::string& text, const std::function<uint64_t(GlobalVariable&)>& place) {
  return Parser(text, place).parse();
}

}  // namespace fullbore::ptx

#include "fullbore/train/config_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr std::ptrdiff_t kMostBrackets = 10000;

[[noreturn]] void refuse(const std::string& source, int line, const std::string& reason) {
  throw UsageError(fmt::format("config: {}:{}: {}", source, line, reason));
}

/// Takes YAML event by event. No tree is built and nothing is expanded, so what cannot be a config
/// is refused where it begins, however large it would have become.
class ConfigEvents : public YAML::EventHandler {
 public:
  explicit ConfigEvents(std::string source) : source_(std::move(source)) {}
  ConfigDocument take() && { return std::move(document_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(source_, line_of(mark), "a second document begins");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_plain(mark, "?", anchor);
    if (level_ == Level::kNothing) return;  // an empty file
    if (expects_key()) refuse(source_, line_of(mark), "a key is missing before the ':'");
    if (level_ == Level::kSections) {  // a section of which all keys are commented out
      section_.clear();
      return;
    }
    refuse(source_, key_.empty() ? line_of(mark) : key_line_,
           fmt::format("'{}' has no value; leave the key out to have its default", path()));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(source_, line_of(mark), "aliases ('*name') have no meaning in a config");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    refuse(source_, line_of(mark), "anchors ('&name') have no meaning in a config");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_plain(mark, tag, anchor);
    switch (level_) {
      case Level::kNothing:
        refuse(source_, line_of(mark), "sections such as 'train:' were expected, not one value");
      case Level::kSections:
        if (!section_.empty()) refuse_value_of_section(mark, "a value");
        if (value.empty()) refuse(source_, line_of(mark), "a section's name is empty");
        section_ = value;
        document_.sections.push_back({value, line_of(mark)});
        return;
      case Level::kKeys:
        if (key_.empty()) {
          start_entry(mark, value);
        } else {
          add_entry({value, tag == "!", false, {}});
        }
        return;
      case Level::kList: items_.push_back(value); return;
      case Level::kItem: add_to_item(mark, value); return;
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_plain(mark, tag, anchor);
    if (level_ == Level::kSections && !section_.empty()) refuse_value_of_section(mark, "a list");
    if (level_ != Level::kKeys || key_.empty())
      refuse(source_, line_of(mark), "a list can only be the value of a key");
    level_ = Level::kList;
    items_.clear();
  }
  void OnSequenceEnd() override {
    level_ = Level::kKeys;
    add_entry({"", false, true, std::move(items_)});
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_plain(mark, tag, anchor);
    const ConfigField* field = level_ == Level::kList ? find_config_field(path()) : nullptr;
    if (field != nullptr && field->maps) {
      level_ = Level::kItem;
      items_.emplace_back();
      item_words_ = 0;
    } else if (level_ == Level::kNothing) {
      level_ = Level::kSections;
    } else if (level_ == Level::kSections && !section_.empty()) {
      level_ = Level::kKeys;
    } else {
      refuse(source_, line_of(mark),
             fmt::format("sections hold keys and keys hold values: nothing goes deeper than '{}'",
                         path()));
    }
  }
  void OnMapEnd() override {
    if (level_ == Level::kItem) {
      level_ = Level::kList;
      return;
    }
    level_ = level_ == Level::kKeys ? Level::kSections : Level::kNothing;
    section_.clear();
  }

 private:
  enum class Level { kNothing, kSections, kKeys, kList, kItem };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }
  std::string path() const { return key_.empty() ? section_ : section_ + "." + key_; }
  bool expects_key() const {
    return (level_ == Level::kSections && section_.empty()) ||
           (level_ == Level::kKeys && key_.empty());
  }

  void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) OnAnchor(mark, "");
    // "?" stands for no tag, "!" for quotes around a scalar.
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(source_, line_of(mark), fmt::format("the tag '{}' has no meaning in a config", tag));
  }
  [[noreturn]] void refuse_value_of_section(const YAML::Mark& mark, const char* what) {
    refuse(source_, line_of(mark),
           fmt::format("'{}' is a section: its keys go below it, indented; {} stands there",
                       section_, what));
  }
  void start_entry(const YAML::Mark& mark, const std::string& key) {
    if (key.empty()) refuse(source_, line_of(mark), "a key is empty");
    key_ = key;
    key_line_ = line_of(mark);
  }
  // A map in a list becomes one text: `{a: 1, b: 2}` "a=1 b=2".
  void add_to_item(const YAML::Mark& mark, const std::string& word) {
    const bool is_key = item_words_++ % 2 == 0;
    if (word.empty() || word.find_first_of(is_key ? " =" : " ") != std::string::npos)
      refuse(source_, line_of(mark),
             fmt::format("'{}': a {} of '{}' is empty or has a blank or '=' in it", word,
                         is_key ? "key" : "value", path()));
    std::string& item = items_.back();
    item += (is_key ? (item.empty() ? "" : " ") : "=") + word;
  }
  void add_entry(ConfigText value) {
    document_.entries.push_back({section_, key_, key_line_, std::move(value)});
    key_.clear();
  }

  const std::string source_;
  ConfigDocument document_;
  int documents_ = 0;
  Level level_ = Level::kNothing;
  std::string section_;
  std::string key_;
  int key_line_ = 0;
  std::vector<std::string> items_;
  size_t item_words_ = 0;  ///< keys and values of a list's map so far
};

int line_at(std::string_view yaml, size_t offset) {
  const std::string_view before = yaml.substr(0, offset);
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

void check_text(std::string_view yaml, const std::string& source) {
  if (yaml.size() > kMostBytes)
    throw UsageError(
        fmt::format("config: {}: more than {} bytes, too many for a config", source, kMostBytes));
  // The parser looks ahead of them as far as their line goes, and keeps 300 bytes for each.
  const auto brackets =
      std::count_if(yaml.begin(), yaml.end(), [](char c) { return c == '[' || c == '{'; });
  if (brackets > kMostBrackets)
    throw UsageError(fmt::format("config: {}: {} opening brackets; a config has at most {}", source,
                                 brackets, kMostBrackets));
  if (const size_t valid = decode_utf8(yaml, [](char32_t) {}); valid < yaml.size())
    refuse(source, line_at(yaml, valid), "not UTF-8 text: " + describe_utf8_error(yaml, valid));
  if (const size_t zero = yaml.find('\0'); zero != std::string_view::npos)
    refuse(source, line_at(yaml, zero), "a zero byte: this is no text");
  // The parser takes a tab for a blank between words, and then misreads what the line belongs to;
  // it passes over directives that it does not know, and all that stands on their line.
  for (size_t begin = 0; begin < yaml.size();) {
    const size_t first = yaml.find_first_not_of(' ', begin);
    if (first != std::string_view::npos && yaml[first] == '\t')
      refuse(source, line_at(yaml, first), "indented by a tab; YAML wants spaces");
    if (yaml[begin] == '%')
      refuse(source, line_at(yaml, begin), "directives ('%name') have no meaning in a config");
    const size_t end = yaml.find('\n', begin);
    begin = end == std::string_view::npos ? yaml.size() : end + 1;
  }
}

}  // namespace

ConfigDocument read_config_yaml(std::string_view yaml, const std::string& source) {
  check_text(yaml, source);
  ConfigEvents events(source);
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    return std::move(events).take();
  } catch (const YAML::Exception& error) {
    refuse(source, error.mark.line + 1, "malformed YAML: " + error.msg);
  }
}

}  // namespace fullbore

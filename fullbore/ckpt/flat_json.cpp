#include "fullbore/ckpt/flat_json.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"

namespace fullbore {
namespace {

constexpr size_t kDeepest = 3;

class FlatReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  FlatJson take() && { return std::move(values_); }
  const std::string& reason() const { return reason_; }

  bool key(std::string& name) override {
    path_.back() = name;
    return true;
  }
  bool start_object(size_t) override {
    if (lists_ > 0) return true;
    if (path_.size() == kDeepest) return refuse("objects nested too deep");
    path_.emplace_back();
    return true;
  }
  bool end_object() override {
    if (lists_ == 0) path_.pop_back();
    return true;
  }
  // Nothing of ours holds lists: that there is one is all that is kept.
  bool start_array(size_t) override {
    return ++lists_ > 1 || add({JsonValue::Kind::kOther, "a list"}, 1);
  }
  bool end_array() override {
    --lists_;
    return true;
  }

  bool string(std::string& value) override { return add({JsonValue::Kind::kText, value}); }
  bool number_unsigned(uint64_t value) override {
    return add(
        {JsonValue::Kind::kUnsigned, std::to_string(value), value, static_cast<double>(value)});
  }
  bool number_integer(int64_t value) override {
    return add({JsonValue::Kind::kNumber, std::to_string(value), 0, static_cast<double>(value)});
  }
  bool number_float(double value, const std::string& text) override {
    return add({JsonValue::Kind::kNumber, text, 0, value});
  }
  bool null() override { return add({JsonValue::Kind::kOther, "null"}); }
  bool boolean(bool value) override {
    return add({JsonValue::Kind::kOther, value ? "true" : "false"});
  }
  bool binary(binary_t&) override { return refuse("bytes"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(fmt::format("malformed at byte {}", position == 0 ? 0 : position - 1));
  }

 private:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }
  bool add(JsonValue value, int depth = 0) {
    if (path_.empty()) return refuse("no object");
    if (lists_ > depth) return true;
    return values_.emplace(path_, std::move(value)).second ||
           refuse(fmt::format("'{}' occurs twice", excerpt(path_.back())));
  }

  FlatJson values_;
  std::vector<std::string> path_;
  int lists_ = 0;
  std::string reason_;
};

}  // namespace

Result<FlatJson> parse_flat_json(std::string_view text) {
  FlatReader reader;
  if (const Status read = read_json_events(text, reader); !read.ok())
    return Failure{reader.reason().empty() ? read.error() : reader.reason()};
  return std::move(reader).take();
}

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fullbore

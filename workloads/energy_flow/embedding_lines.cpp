#include "workloads/energy_flow/embedding_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace fullbore::energy_flow {

Result<bool> EmbeddingLines::next(EmbeddingRecord& record) {
  for (;;) {
    Result<bool> more = lines_.next();
    if (!more || !more.value()) return more;
    if (!trimmed(lines_.line()).empty()) break;
  }
  if (const Status status = read_record(record); !status) return lines_.failure(status.error());
  return true;
}

Status EmbeddingLines::read_record(EmbeddingRecord& record) {
  json_ = JsonReader(lines_.line());
  problem_.clear();
  record.has_text = record.has_tokens = false;
  record.vector.clear();
  record.text.clear();
  record.tokens = {};
  bool has_target = false, has_mask = false;
  std::string key;
  json_.begin_object();
  while (problem_.empty() && json_.next_key(key)) {
    if (key == "target") {
      has_target = read_target(record);
    } else if (key == "text") {
      record.has_text = json_.read_string(record.text);
    } else if (key == "input_ids") {
      record.has_tokens = read_tokens(record);
    } else if (key == "attention_mask") {
      has_mask = read_mask(record);
    } else {
      json_.skip();
    }
  }
  if (!problem_.empty()) return Failure{problem_};
  if (!json_.finish()) return Failure{json_.error()};
  if (!has_target) return Failure{"the field 'target' is missing"};
  if (has_mask && !record.has_tokens)
    return Failure{"the field 'attention_mask' is there without 'input_ids'"};
  if (record.has_tokens && !has_mask) record.tokens.mask.assign(record.tokens.ids.size(), 1);
  if (std::ssize(record.text) > kMostTextBytes)
    return Failure{fmt::format("text: {} bytes; at most {} were expected", record.text.size(),
                               kMostTextBytes)};
  if (facts_.width == 0) facts_.width = std::ssize(record.vector);
  return check_record(record, facts_);
}

bool EmbeddingLines::read_target(EmbeddingRecord& record) {
  record.vector.clear();
  if (!json_.begin_array()) return false;
  while (json_.next_element()) {
    if (std::ssize(record.vector) == kMostWidth) {
      problem_ = fmt::format("target: at most {} numbers were expected", kMostWidth);
      return false;
    }
    const JsonKind kind = json_.peek();
    std::string_view written;
    if (!json_.skip(written)) return false;
    const std::optional<double> number =
        kind == JsonKind::kNumber ? parse_number(written) : std::nullopt;
    if (!number) {
      problem_ = fmt::format("target: element {} is {}; a finite number was expected",
                             record.vector.size(), quote_text(written));
      return false;
    }
    record.vector.push_back(static_cast<float>(*number));
  }
  if (record.vector.empty() && !json_.failed()) problem_ = "target: no numbers";
  return true;
}

bool EmbeddingLines::read_tokens(EmbeddingRecord& record) {
  record.tokens.ids.clear();
  if (!json_.begin_array()) return false;
  while (json_.next_element()) {
    int64_t id = 0;
    if (!json_.read_integer(id)) return false;
    if (id < 0 || id > INT32_MAX || std::ssize(record.tokens.ids) == kMostTokens) {
      problem_ = id < 0 || id > INT32_MAX
                     ? fmt::format("input_ids: {}; 0 to {} were expected", id, INT32_MAX)
                     : fmt::format("input_ids: at most {} tokens were expected", kMostTokens);
      return false;
    }
    record.tokens.ids.push_back(static_cast<int32_t>(id));
  }
  return true;
}

bool EmbeddingLines::read_mask(EmbeddingRecord& record) {
  record.tokens.mask.clear();
  if (!json_.begin_array()) return false;
  while (json_.next_element()) {
    int64_t value = 0;
    if (!json_.read_integer(value)) return false;
    if ((value != 0 && value != 1) || std::ssize(record.tokens.mask) == kMostTokens) {
      problem_ = value != 0 && value != 1
                     ? fmt::format("attention_mask: {}; 0 or 1 was expected", value)
                     : fmt::format("attention_mask: at most {} numbers were expected", kMostTokens);
      return false;
    }
    record.tokens.mask.push_back(static_cast<uint8_t>(value));
  }
  return true;
}

std::string embedding_line(const EmbeddingRecord& record) {
  std::string line = "{";
  if (record.has_text) line += fmt::format("\"text\":{},", nlohmann::json(record.text).dump());
  if (record.has_tokens)
    line += fmt::format("\"input_ids\":[{}],\"attention_mask\":[{}],",
                        fmt::join(record.tokens.ids, ","), fmt::join(record.tokens.mask, ","));
  // The shortest text that is read as the same float.
  return line + fmt::format("\"target\":[{}]}}\n", fmt::join(record.vector, ","));
}

}  // namespace fullbore::energy_flow

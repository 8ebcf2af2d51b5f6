#include "fullbore/ckpt/run_record.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace fullbore {
namespace {

template <class Number>
bool parse_number(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// JSON has no infinities and no NaN: every value is a text.
std::string metrics_json(const std::map<std::string, double>& metrics) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : metrics) json[name] = fmt::format("{}", value);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool parse_metrics(const std::string& text, std::map<std::string, double>& metrics) {
  const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    return depth <= 1;
  };
  const nlohmann::json json = nlohmann::json::parse(text, shallow, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items())
    if (!value.is_string() || !parse_number(value.get_ref<const std::string&>(), metrics[name]))
      return false;
  return true;
}

}  // namespace

Metadata to_metadata(const RunRecord& record) {
  return {{"step", std::to_string(record.step)},
          {"data_position", std::to_string(record.data_position)},
          {"seed", std::to_string(record.seed)},
          {"config", record.config},
          {"tokenizer", record.tokenizer},
          {"metrics", metrics_json(record.metrics)}};
}

Result<RunRecord> read_run_record(const Checkpoint& checkpoint) {
  RunRecord record;
  const Metadata& metadata = checkpoint.metadata();
  for (const auto& [key, empty] : to_metadata(record))
    if (metadata.find(key) == metadata.end())
      return Failure{fmt::format("{}: the metadata lacks '{}'", checkpoint.path(), key)};
  const auto text = [&](std::string_view key) -> const std::string& {
    return metadata.find(key)->second;
  };
  const auto malformed = [&](const char* key, const char* expected) {
    return Failure{fmt::format("{}: metadata '{}' is '{}', {} was expected", checkpoint.path(), key,
                               text(key).substr(0, 80), expected)};
  };
  if (!parse_number(text("step"), record.step) || record.step < 0)
    return malformed("step", "a number of steps");
  if (!parse_number(text("data_position"), record.data_position))
    return malformed("data_position", "a position");
  if (!parse_number(text("seed"), record.seed)) return malformed("seed", "a seed");
  if (!parse_metrics(text("metrics"), record.metrics))
    return malformed("metrics", "an object of numbers");
  record.config = text("config");
  record.tokenizer = text("tokenizer");
  return record;
}

}  // namespace fullbore

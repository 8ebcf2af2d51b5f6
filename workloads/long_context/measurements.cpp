#include "workloads/long_context/measurements.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/json.h"
#include "fullbore/base/text.h"
#include "fullbore/data/text_file.h"
#include "workloads/long_context/json_records.h"

namespace fullbore::long_context {
namespace {

// A grid of a million cells takes less, and the tree that JSON becomes several times as much.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

Result<nlohmann::json> read_object(const std::string& path) {
  const Result<std::string> text = read_text(path, kMostBytes);
  if (!text.ok()) return Failure{text.error()};
  Result<nlohmann::json> json = parse_json(text.value());
  if (!json.ok()) return Failure{fmt::format("{}: {}", path, json.error())};
  if (!json.value().is_object()) return Failure{fmt::format("{}: not a JSON object", path)};
  return json;
}

/// nullptr: there is no such text.
const std::string* find_text(const nlohmann::json& json, const char* field) {
  const auto found = json.find(field);
  return found == json.end() ? nullptr : found->get_ptr<const std::string*>();
}

std::optional<double> share_of(const nlohmann::json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_number() || *found < 0 || *found > 1) return std::nullopt;
  return found->get<double>();
}

/// Where "length" stands, a whole number that fits.
std::optional<int64_t> length_of(const nlohmann::json& json) {
  const auto found = json.find("length");
  if (found == json.end() || !found->is_number_integer() || *found < 1 ||
      *found > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return found->get<int64_t>();
}

}  // namespace

Result<AccuracyCurve> read_accuracy_curve(const std::string& path) {
  const Result<nlohmann::json> read = read_object(path);
  const auto refused = [&](const std::string& reason) {
    return Failure{fmt::format("{}; a file of `longcontext niah --json` was expected", reason)};
  };
  if (!read.ok()) return refused(read.error());
  const nlohmann::json& json = read.value();
  const auto lengths = json.find("lengths");
  if (lengths == json.end()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json.items()) keys.push_back(key);
    return refused(
        fmt::format("{}: there is no field 'lengths'.{}", path, did_you_mean("lengths", keys)));
  }
  if (!lengths->is_array() || lengths->empty())
    return refused(fmt::format("{}: 'lengths' is no list", path));
  AccuracyCurve curve;
  if (const std::string* const model = find_text(json, "model")) curve.name = *model;
  for (const nlohmann::json& each : *lengths) {
    const std::optional<int64_t> length = each.is_object() ? length_of(each) : std::nullopt;
    if (!length)
      return refused(fmt::format("{}: an element of 'lengths' has no whole number 'length'", path));
    const std::optional<double> accuracy = share_of(each, "accuracy");
    if (!accuracy)
      return refused(
          fmt::format("{}: an element of 'lengths' has no 'accuracy' from 0 to 1", path));
    curve.accuracies.push_back({*length, *accuracy});
  }
  return curve;
}

Result<PhaseMeasurement> read_phase_measurement(const std::string& path) {
  const Result<nlohmann::json> read = read_object(path);
  const auto refused = [&](const std::string& reason) {
    return Failure{fmt::format(
        "{}; what a command of `fullbore longcontext` wrote by --json was expected", reason)};
  };
  if (!read.ok()) return refused(read.error());
  const nlohmann::json& json = read.value();
  const auto lacks_text = [&](const char* field) {
    return refused(fmt::format("{}: there is no text '{}'", path, field));
  };
  const std::string* const kind = find_text(json, "kind");
  if (kind == nullptr) return lacks_text("kind");
  const std::string* const model = find_text(json, "model");
  if (model == nullptr) return lacks_text("model");
  PhaseMeasurement measurement{*model};
  if (*kind == "infinitebench") {
    measurement.phase = 2;
    measurement.gate = Gate::passed;
    measurement.score = share_of(json, "score");
    if (!measurement.score)
      return refused(fmt::format("{}: there is no 'score' from 0 to 1", path));
    return measurement;
  }
  const char* const field = *kind == "niah"        ? "gate_16k"
                            : *kind == "longbench" ? "gate_100k"
                                                   : nullptr;
  if (field == nullptr || !json.contains(field))
    return refused(
        fmt::format("{}: of kind '{}', which no phase has (needles: --task single, no --control)",
                    path, kind->substr(0, 80)));
  measurement.phase = *kind == "niah" ? 0 : 1;
  const std::string* const name = find_text(json, field);
  for (const Gate gate : {Gate::not_measured, Gate::failed, Gate::passed}) {
    if (name == nullptr || gate_name(gate) != *name) continue;
    measurement.gate = gate;
    return measurement;
  }
  return refused(fmt::format("{}: '{}' is no state of a gate", path, field));
}

Result<std::map<std::string, std::string>> read_needle_answers(const std::string& path) {
  Result<JsonRecords> records = JsonRecords::open(path);
  if (!records.ok()) return Failure{records.error()};
  std::map<std::string, std::string> answers;
  for (std::string_view json;;) {
    const Result<bool> more = records.value().next(json);
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) return answers;
    JsonRecord record(json);
    std::string id, answer;
    record.read("id", id);
    record.read("answer", answer);
    if (record.ok() && !answers.emplace(id, answer).second)
      record.fail(fmt::format("a second answer to '{}'", id.substr(0, 80)));
    if (!record.ok()) return records.value().failure(record.error());
  }
}

}  // namespace fullbore::long_context

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "apps/long_context.h"
#include "apps/output.h"
#include "fullbore/base/json.h"
#include "fullbore/base/text.h"
#include "fullbore/data/text_file.h"

namespace fullbore {
namespace {

using long_context::LengthAccuracy;

struct UsableArguments {
  std::vector<std::string> measurements;
  double threshold = 0.8;
  bool json = false;
};

/// "4000:0.85".
LengthAccuracy parse_measurement(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::vector<int64_t> length = parse_lengths("usable-length", text.substr(0, colon));
  if (colon == text.size() || length.size() != 1)
    throw UsageError(fmt::format(
        "usable-length: '{}' is neither a file of `longcontext niah --json` nor LENGTH:ACCURACY",
        text));
  return {length.front(), parse_numbers("usable-length", text.substr(colon + 1), 0, 1).front()};
}

std::vector<LengthAccuracy> read_measurements(const std::string& path) {
  const std::string text = read_text(path).take_or_throw();
  const Result<nlohmann::json> parsed = parse_json(text);
  std::vector<LengthAccuracy> measured;
  const auto refuse = [&](const std::string& reason) {
    throw DataError(
        fmt::format("{}: {}; a file of `longcontext niah --json` was expected", path, reason));
  };
  if (!parsed.ok()) refuse(parsed.error());
  const nlohmann::json& json = parsed.value();
  if (!json.is_object()) refuse("not a JSON object");
  if (!json.contains("lengths")) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json.items()) keys.push_back(key);
    refuse("there is no field 'lengths'." + did_you_mean("lengths", keys));
  }
  if (!json["lengths"].is_array() || json["lengths"].empty()) refuse("'lengths' is no list");
  for (const nlohmann::json& each : json["lengths"]) {
    if (!each.is_object() || !each.contains("length") || !each["length"].is_number_integer() ||
        each["length"] < 1)
      refuse("an element of 'lengths' has no whole number 'length'");
    if (!each.contains("accuracy") || !each["accuracy"].is_number() || each["accuracy"] < 0 ||
        each["accuracy"] > 1)
      refuse("an element of 'lengths' has no 'accuracy' from 0 to 1");
    measured.push_back({each["length"], each["accuracy"]});
  }
  return measured;
}

ExitCode run_usable_length(const UsableArguments& arguments) {
  std::vector<LengthAccuracy> measured;
  for (const std::string& each : arguments.measurements) {
    if (each.find(':') != std::string::npos && each.find('/') == std::string::npos) {
      measured.push_back(parse_measurement(each));
      continue;
    }
    for (const LengthAccuracy& one : read_measurements(each)) measured.push_back(one);
  }
  std::ranges::sort(measured, {}, &LengthAccuracy::length);
  for (size_t i = 1; i < measured.size(); ++i)
    if (measured[i].length == measured[i - 1].length)
      throw UsageError(fmt::format("usable-length: {} is measured twice", measured[i].length));
  if (arguments.json)
    write_json("-", usable_length_json(measured, arguments.threshold));
  else
    print_output("usable length at {}: {}\n", percent_text(arguments.threshold),
                 usable_length_text(measured, arguments.threshold));
  return ExitCode::kOk;
}

}  // namespace

void add_usable_length_command(Command group) {
  Command command = group.add_subcommand(
      "usable-length", "The length at which a model's accuracy falls below a threshold");
  auto arguments = std::make_shared<UsableArguments>();
  command
      .add_option("FILE", arguments->measurements,
                  "What `longcontext niah --json` wrote, or measurements LENGTH:ACCURACY")
      .required();
  command.add_option("--threshold", arguments->threshold, "Accuracy that is still usable")
      .between(0.0, 1.0)
      .shows_default();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Lengths are scanned upward. Between the two that bracket the first fall it is interpolated on the
logarithm of the length, for lengths double from one to the next, and linearly beside it.

Example:
  fullbore longcontext usable-length niah.json
  fullbore longcontext usable-length 1K:0.95 2K:0.92 4K:0.7 --threshold 0.9)");
  command.runs([arguments] { return run_usable_length(*arguments); });
}

}  // namespace fullbore

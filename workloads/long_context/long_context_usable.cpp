#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "workloads/long_context/longcontext_command.h"
#include "workloads/long_context/measurements.h"
#include "workloads/long_context/usable_chart.h"

namespace fullbore {
namespace {

using long_context::AccuracyCurve;
using long_context::LengthAccuracy;

struct UsableArguments {
  std::vector<std::string> measurements;
  double threshold = 0.8;
  bool json = false;
  std::string svg;
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

/// Puts the measurements to those of the model; of one that nobody named there may be one.
void add(std::vector<AccuracyCurve>& curves, const AccuracyCurve& more) {
  auto curve = std::ranges::find(curves, more.name, &AccuracyCurve::name);
  if (curve == curves.end()) curve = curves.insert(curves.end(), {more.name, {}});
  curve->accuracies.insert(curve->accuracies.end(), more.accuracies.begin(), more.accuracies.end());
}

/// "4000:0.85", or of a model by name "mine=4000:0.85".
AccuracyCurve parse_named(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return {"", {parse_measurement(text)}};
  return {text.substr(0, equals), {parse_measurement(text.substr(equals + 1))}};
}

/// Models in the order in which they came, lengths ascending.
std::vector<AccuracyCurve> curves_of(const std::vector<std::string>& measurements) {
  std::vector<AccuracyCurve> curves;
  std::vector<AccuracyCurve> unnamed;
  for (const std::string& each : measurements) {
    const bool is_text = each.find(':') != std::string::npos && !std::filesystem::exists(each);
    const AccuracyCurve one =
        is_text ? parse_named(each) : long_context::read_accuracy_curve(each).take_or_throw();
    add(one.name.empty() ? unnamed : curves, one);
  }
  // Measurements without a name are of the only model.
  if (!unnamed.empty() && curves.size() > 1)
    throw UsageError(
        fmt::format("usable-length: {} measurements are of no model, and there are {}: write "
                    "NAME=LENGTH:ACCURACY",
                    unnamed.front().accuracies.size(), curves.size()));
  if (!unnamed.empty()) {
    if (!curves.empty()) unnamed.front().name = curves.front().name;
    add(curves, unnamed.front());
  }
  for (AccuracyCurve& curve : curves) {
    std::vector<LengthAccuracy>& measured = curve.accuracies;
    std::ranges::sort(measured, {}, &LengthAccuracy::length);
    for (size_t i = 1; i < measured.size(); ++i)
      if (measured[i].length == measured[i - 1].length)
        throw UsageError(fmt::format("usable-length: {} is measured twice{}", measured[i].length,
                                     curves.size() > 1 ? " of " + curve.name : ""));
  }
  return curves;
}

ExitCode run_usable_length(const UsableArguments& arguments) {
  check_output_file(arguments.svg);
  const std::vector<AccuracyCurve> curves = curves_of(arguments.measurements);
  if (!arguments.svg.empty())
    write_output_file(arguments.svg, long_context::usable_length_svg(curves, arguments.threshold));
  if (arguments.svg == "-") return ExitCode::kOk;
  if (curves.size() == 1) {
    const std::vector<LengthAccuracy>& measured = curves.front().accuracies;
    if (arguments.json)
      write_json("-", usable_length_json(measured, arguments.threshold));
    else
      print_output("usable length at {}: {}\n", percent_text(arguments.threshold),
                   usable_length_text(measured, arguments.threshold));
    return ExitCode::kOk;
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  if (!arguments.json) print_output("usable length at {}\n", percent_text(arguments.threshold));
  for (const AccuracyCurve& curve : curves) {
    if (arguments.json) {
      json.push_back({{"model", curve.name}});
      json.back().update(usable_length_json(curve.accuracies, arguments.threshold));
    } else {
      print_output("  {}: {}\n", curve.name,
                   usable_length_text(curve.accuracies, arguments.threshold));
    }
  }
  if (arguments.json) write_json("-", json);
  return ExitCode::kOk;
}

}  // namespace

void add_usable_length_command(Command group) {
  Command command = group.add_subcommand(
      "usable-length", "The length at which a model's accuracy falls below a threshold");
  auto arguments = std::make_shared<UsableArguments>();
  command
      .add_option(
          "FILE", arguments->measurements,
          "What `longcontext niah --json` or `ruler --json` wrote, of one or several models; or "
          "measurements LENGTH:ACCURACY, NAME=LENGTH:ACCURACY")
      .required();
  command.add_option("--threshold", arguments->threshold, "Accuracy that is still usable")
      .between(0.0, 1.0)
      .shows_default();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.add_option("--svg", arguments->svg,
                     "File to draw all models and the threshold in; -: stdout");
  command.footer(R"(
Lengths are scanned upward. Between the two that bracket the first fall it is interpolated on the
logarithm of the length, for lengths double from one to the next, and linearly beside it.

Example:
  fullbore longcontext usable-length niah.json
  fullbore longcontext usable-length 1K:0.95 2K:0.92 4K:0.7 --threshold 0.9
  fullbore longcontext usable-length one.json two.json "other=1K:0.9" "other=4K:0.6" --svg usable.svg)");
  command.runs([arguments] { return run_usable_length(*arguments); });
}

}  // namespace fullbore

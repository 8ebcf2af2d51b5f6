#include "fullbore/app/margins.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fullbore/app/exit_codes.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

/// "0.02" or "3%".
struct Margin {
  std::string metric;
  double value = 0;
  bool is_relative = false;
};

Margin read_margin(const std::string& text) {
  const size_t equals = text.find('=');
  Margin margin;
  std::string_view number;
  if (equals != text.npos) {
    margin.metric = text.substr(0, equals);
    number = std::string_view(text).substr(equals + 1);
  }
  margin.is_relative = number.ends_with('%');
  if (margin.is_relative) number.remove_suffix(1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), margin.value);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  if (margin.metric.empty() || !is_number || !std::isfinite(margin.value) || margin.value <= 0)
    throw UsageError(fmt::format(
        "--margin {}: a metric and a positive number were expected, as in --margin loss=0.02, or "
        "a share of A's figure, as in --margin perplexity=3%",
        text));
  if (margin.is_relative) margin.value /= 100;
  return margin;
}

}  // namespace

void add_judge_options(Command command, JudgeArguments& arguments) {
  constexpr double kLeastChance = 1e-6;
  command
      .add_option("--margin", arguments.margins,
                  "NAME=NUMBER, or NAME=NUMBER%: how much worse is no worse; repeatable")
      .one_value_each_time();
  command
      .add_option("--alpha", arguments.options.alpha,
                  "Chance that what is worse by the margin passes")
      .between(kLeastChance, 0.5)
      .shows_default();
  command
      .add_option("--power", arguments.options.power,
                  "Chance wanted that what does not differ passes")
      .between(0.5, 1 - kLeastChance)
      .shows_default();
}

QualityMetrics with_margins(QualityMetrics metrics, const JudgeArguments& arguments,
                            const std::string& model) {
  const bool is_declared = !metrics.empty();
  for (const std::string& text : arguments.margins) {
    const Margin margin = read_margin(text);
    auto found = std::ranges::find(metrics, margin.metric, &QualityMetric::name);
    if (found == metrics.end() && is_declared) {
      std::vector<std::string> names;
      for (const QualityMetric& each : metrics) names.push_back(each.name);
      throw UsageError(fmt::format("--margin {}: a {} model is not judged by '{}'.{}", text, model,
                                   margin.metric, did_you_mean(margin.metric, names)));
    }
    if (found == metrics.end()) found = metrics.insert(found, QualityMetric{.name = margin.metric});
    found->margin = margin.value;
    found->is_relative = margin.is_relative;
    found->source = "--margin";
  }
  if (metrics.empty())
    throw UsageError(fmt::format(
        "nobody has declared what a {} model is judged by: say it by --margin loss=NUMBER", model));
  check_quality(metrics);
  return metrics;
}

QualityMetrics judged_metrics(const Config& config, const JudgeArguments& arguments) {
  return with_margins(declared_quality(config), arguments, config.model.name);
}

ExitCode exit_code_of(Verdict verdict) {
  if (verdict == Verdict::passed) return ExitCode::kOk;
  return verdict == Verdict::failed ? ExitCode::kNumerical : kUndecided;
}

}  // namespace fullbore

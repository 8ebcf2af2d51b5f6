#include "fullbore/app/bench_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/version.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kConfidence = 0.95;

double step_seconds(const BenchContender& c) { return c.times.seconds_per_step(); }

/// The mean over the steps that were measured of what their plans say.
double per_step(const BenchContender& c, double (*figure)(const PlanReport&)) {
  const auto steps = static_cast<double>(c.times.step_seconds.size());
  double sum = 0;
  for (size_t i = 0; i < c.shapes.size(); ++i)
    sum += static_cast<double>(c.times.shapes[i].step_seconds.size()) / steps *
           figure(c.shapes[i].plan);
  return sum;
}
double flops(const BenchContender& c) {
  return per_step(c, [](const PlanReport& plan) { return plan.flops; });
}
double bytes_moved(const BenchContender& c) {
  return per_step(c, [](const PlanReport& plan) { return plan.bytes_moved; });
}
double roofline_seconds(const BenchContender& c) {
  return per_step(c, [](const PlanReport& plan) { return plan.roofline_seconds; });
}
double launches(const BenchContender& c) {
  return per_step(c, [](const PlanReport& plan) { return static_cast<double>(plan.launches); });
}

bool counts_at_most(const BenchContender& c) {
  return std::ranges::any_of(c.shapes, [](const BenchShape& shape) { return shape.plan.at_most; });
}

double flops_share(const BenchContender& c) {
  return flops(c) / step_seconds(c) / peak_flops(c.config, c.machine.peaks);
}
double bandwidth_share(const BenchContender& c) {
  return bytes_moved(c) / step_seconds(c) / c.machine.peaks.bytes_per_second;
}
double wait_share(const BenchContender& c) { return c.times.wait_seconds / c.times.seconds(); }
double tokens_per_second(const BenchContender& c) {
  return c.times.tokens_per_step() / step_seconds(c);
}
double samples_per_second(const BenchContender& c) {
  return c.times.samples_per_step() / step_seconds(c);
}

double seconds_of(const ShapeTimes& times) {
  return std::accumulate(times.step_seconds.begin(), times.step_seconds.end(), 0.0);
}
/// Tokens or samples, by what the job counts.
double rate(const BenchContender& c, const ShapeTimes& times) {
  return (c.sample_unit.empty() ? times.tokens : times.samples) / seconds_of(times);
}

/// Means of whole numbers are whole where there is one shape.
Json number(double value) {
  return value == std::floor(value) ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json shapes_json(const BenchContender& c) {
  Json shapes = Json::array();
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    const ShapeTimes& times = c.times.shapes[i];
    const PlanReport& plan = c.shapes[i].plan;
    const bool met = !times.step_seconds.empty();
    shapes.push_back({{"batch", c.shapes[i].batch},
                      {"steps", times.step_seconds.size()},
                      {"median_seconds", met ? Json(median(times.step_seconds)) : Json()},
                      {c.sample_unit.empty() ? "tokens_per_second" : "samples_per_second",
                       met ? Json(rate(c, times)) : Json()},
                      {"flops_per_step", plan.flops},
                      {"bytes_per_step", plan.bytes_moved},
                      {"roofline_seconds", plan.roofline_seconds},
                      {"launches", plan.launches}});
  }
  return shapes;
}

Json start_json(const StartTimes& start, double step) {
  Json parts = Json::object();
  for (const StartPart& part : start.parts) parts[part.name] = part.seconds;
  return {{"seconds", start.seconds()},
          {"seconds_beside_a_step", start.seconds() - step},
          {"parts", parts}};
}

Json start_json(const BenchContender& c) {
  if (!c.start) return nullptr;
  if (!c.start->ok()) return {{"problem", c.start->error()}};
  return {{"cold", start_json(c.start->value().cold, step_seconds(c))},
          {"warm", start_json(c.start->value().warm, step_seconds(c))}};
}

Json contender_json(const BenchContender& c) {
  const Spread spread = spread_of(c.times.step_seconds);
  Json json = {{"name", c.name},
               {"settings", c.settings},
               {"batches", c.batches},
               {"decisions", c.decisions},
               {"precision", c.config.engine.precision},
               {"threads", c.machine.workers},
               {"parameters", c.parameters},
               {"tokens_per_step", c.times.tokens_per_step()},
               {"samples_per_step", number(c.times.samples_per_step())},
               {"steps", c.times.step_seconds.size()},
               {"mixture", c.times.mixture},
               {"steps_per_round", c.times.steps_per_round},
               {"seconds_per_step",
                {{"median", spread.median},
                 {"lower_quartile", spread.lower_quartile},
                 {"upper_quartile", spread.upper_quartile},
                 {"least", spread.least},
                 {"most", spread.most},
                 {"mean", c.times.seconds() / static_cast<double>(c.times.step_seconds.size())}}},
               {"round_seconds", c.times.round_seconds},
               {"tokens_per_second", tokens_per_second(c)},
               {"samples_per_second", samples_per_second(c)},
               {"flops_per_step", flops(c)},
               {"bytes_per_step", bytes_moved(c)},
               {"loops_at_most", counts_at_most(c)},
               {"share_of_peak_flops", flops_share(c)},
               {"share_of_bandwidth", bandwidth_share(c)},
               {"roofline_seconds", roofline_seconds(c)},
               {"share_of_roofline", roofline_share(c)},
               {"data_wait_share", wait_share(c)},
               {"launches", number(launches(c))},
               {"planned_peak_bytes", c.planned_peak_bytes},
               {"trace_seconds", c.trace_seconds},
               {"compile_seconds", c.compile_seconds},
               {"seconds_to_first_step", c.seconds_to_first_step},
               {"start", start_json(c)},
               {"first_loss", c.times.first_loss},
               {"last_loss", c.times.last_loss},
               {"peak_flops", peak_flops(c.config, c.machine.peaks)},
               {"peak_bytes_per_second", c.machine.peaks.bytes_per_second},
               {"shapes", shapes_json(c)}};
  if (!c.sample_unit.empty())
    for (const char* const counted : {"tokens_per_step", "tokens_per_second"}) json.erase(counted);
  return json;
}

using Cell = std::function<std::string(const BenchContender&)>;

std::string row(const BenchReport& report, const char* label, const Cell& cell) {
  std::string line = fmt::format("  {:<14}", label);
  for (const BenchContender& contender : report.contenders)
    line += fmt::format("{:<32}", cell(contender));
  line.resize(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

/// Near one by thousandths; a stall of the machine makes hundreds of it, whose digits say nothing.
std::string ratio_text(double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 10 ? 3 : 1); }

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

std::string short_name(const BenchContender& c) {
  return c.name.size() <= 30 ? c.name
                             : fmt::format("{}...", std::string_view(c.name).substr(0, 27));
}

std::string decision_lines(const BenchReport& report) {
  std::string text;
  for (const BenchContender& contender : report.contenders) {
    if (contender.decisions.empty()) continue;
    text += fmt::format("memory, {}:\n", short_name(contender));
    for (const std::string& decision : contender.decisions) text += fmt::format("  {}\n", decision);
  }
  return text;
}

std::string time_rows(const BenchReport& report) {
  std::string text = row(report, "step", [](const BenchContender& c) {
    return fmt::format("{} ms, the {} of {}", milliseconds(step_seconds(c)),
                       c.times.mixture ? "mean" : "median", c.times.step_seconds.size());
  });
  text += row(report, "  quartiles", [](const BenchContender& c) {
    const Spread spread = spread_of(c.times.step_seconds);
    return milliseconds(spread.lower_quartile) + " to " + milliseconds(spread.upper_quartile) +
           " ms";
  });
  text += row(report, "  extremes", [](const BenchContender& c) {
    const Spread spread = spread_of(c.times.step_seconds);
    return milliseconds(spread.least) + " to " + milliseconds(spread.most) + " ms";
  });
  text += row(report, "throughput", [](const BenchContender& c) {
    std::string samples = fmt::format("{} {}/s", count_text(samples_per_second(c)),
                                      c.sample_unit.empty() ? "samples" : c.sample_unit);
    if (c.times.tokens == 0 || !c.sample_unit.empty()) return samples;
    return count_text(tokens_per_second(c)) + " tok/s, " + samples;
  });
  text += row(report, "data wait", [](const BenchContender& c) {
    return fmt::format("{:.1f} % of the time", 100 * wait_share(c));
  });
  return text;
}

std::string limit_rows(const BenchReport& report) {
  std::string text = row(report, "arithmetic", [](const BenchContender& c) {
    return fmt::format("{}FLOP, {:.1f} % of peak", count_text(flops(c)), 100 * flops_share(c));
  });
  text += row(report, "traffic", [](const BenchContender& c) {
    return fmt::format("{}B, {:.1f} % of bandwidth", count_text(bytes_moved(c)),
                       100 * bandwidth_share(c));
  });
  text += row(report, "roofline", [](const BenchContender& c) {
    return fmt::format("{} ms, {:.1f} % reached", milliseconds(roofline_seconds(c)),
                       100 * roofline_share(c));
  });
  if (std::ranges::any_of(report.contenders, counts_at_most))
    text += "loops are counted to their ends: the device does not say how far they went\n";
  else if (std::ranges::any_of(report.contenders,
                               [](const BenchContender& c) { return roofline_share(c) > 1; }))
    text += kAboveRoofline;
  text += row(report, "memory", [](const BenchContender& c) {
    return bytes_text(static_cast<double>(c.planned_peak_bytes)) + " planned";
  });
  text += row(report, "built in", [](const BenchContender& c) {
    return fmt::format("{} trace, {} compile", duration_text(c.trace_seconds),
                       duration_text(c.compile_seconds));
  });
  text += row(report, "  first step", [](const BenchContender& c) {
    return "made after " + duration_text(c.seconds_to_first_step);
  });
  text += row(report, "loss", [](const BenchContender& c) {
    return fmt::format("{:.4f} first, {:.4f} last", c.times.first_loss, c.times.last_loss);
  });
  return text;
}

std::string start_table(const BenchContender& c) {
  std::string text = fmt::format("start, {}:\n", short_name(c));
  if (!c.start->ok()) return text + fmt::format("  not measured: {}\n", c.start->error());
  const StartTimes& cold = c.start->value().cold;
  const StartTimes& warm = c.start->value().warm;
  const auto line = [&](const std::string& name, double first, double second) {
    text += fmt::format("  {:<14}{:>14}{:>14}\n", name, milliseconds(first), milliseconds(second));
  };
  text += fmt::format("  {:<14}{:>14}{:>14}\n", "part", "cold, ms", "warm, ms");
  for (size_t i = 0; i < std::min(cold.parts.size(), warm.parts.size()); ++i)
    line(i + 1 < cold.parts.size() ? cold.parts[i].name : "first step", cold.parts[i].seconds,
         warm.parts[i].seconds);
  line("all", cold.seconds(), warm.seconds());
  line("beside a step", cold.seconds() - step_seconds(c), warm.seconds() - step_seconds(c));
  return text;
}

std::string shape_table(const BenchContender& c) {
  std::string text = fmt::format("shapes, {}:\n", short_name(c));
  text += fmt::format("  {:<14}{:>8}{:>14}{:>14}{:>14}\n", "batch", "steps", "median ms",
                      (c.sample_unit.empty() ? "tok" : c.sample_unit) + "/s", "roofline ms");
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    const ShapeTimes& times = c.times.shapes[i];
    const bool met = !times.step_seconds.empty();
    text += fmt::format(
        "  {:<14}{:>8}{:>14}{:>14}{:>14}\n", c.shapes[i].batch, times.step_seconds.size(),
        met ? milliseconds(median(times.step_seconds)) : "-",
        met ? count_text(rate(c, times)) : "-", milliseconds(c.shapes[i].plan.roofline_seconds));
  }
  return text;
}

}  // namespace

double roofline_share(const BenchContender& c) { return roofline_seconds(c) / step_seconds(c); }

ThroughputRatio ratio_of(const BenchReport& report) {
  const BenchmarkTimes& a = report.contenders.at(0).times;
  const BenchmarkTimes& b = report.contenders.at(1).times;
  if (a.tokens > 0 && b.tokens > 0)
    return compare_throughput(a.round_tokens_per_second(), b.round_tokens_per_second());
  return compare_throughput(a.round_samples_per_second(), b.round_samples_per_second());
}

Json to_json(const BenchReport& report) {
  Json contenders = Json::array();
  for (const BenchContender& contender : report.contenders)
    contenders.push_back(contender_json(contender));
  const Machine& machine = report.contenders.front().machine;
  Json json = {{"schema", 1},
               {"version", version()},
               {"config", report.config},
               {"machine",
                {{"processor", machine.processor},
                 {"fp32_flops", machine.peaks.fp32_flops},
                 {"bf16_flops", machine.peaks.bf16_flops},
                 {"bytes_per_second", machine.peaks.bytes_per_second}}},
               {"warm_up_steps", report.contenders.front().times.warm_up_steps},
               {"rounds", report.contenders.front().times.round_seconds.size()},
               {"contenders", contenders},
               {"peak_resident_bytes", report.peak_resident_bytes}};
  if (report.contenders.size() == 2) {
    const ThroughputRatio ratio = ratio_of(report);
    json["throughput_ratio"] = {
        {"median", ratio.median},
        {"low", ratio.interval.low},
        {"high", ratio.interval.high},
        {"confidence", kConfidence},
        {"method", "percentile bootstrap of the median of the rounds' paired ratios"}};
  }
  return json;
}

std::string text(const BenchReport& report) {
  const BenchContender& first = report.contenders.front();
  std::string out = fmt::format(
      "{}\n{}\nbatches: {}\n{}{} rounds after {} steps of warm-up\n", report.config,
      job_text(first.config, first.batch, first.parameters, first.machine.workers), first.batches,
      decision_lines(report), first.times.round_seconds.size(), first.times.warm_up_steps);
  if (report.contenders.size() == 2) out += row(report, "", short_name);
  out += time_rows(report) + limit_rows(report);
  out += fmt::format("  {:<14}{} resident at most\n", "",
                     bytes_text(static_cast<double>(report.peak_resident_bytes)));
  for (const BenchContender& contender : report.contenders)
    if (contender.shapes.size() > 1) out += shape_table(contender);
  for (const BenchContender& contender : report.contenders)
    if (contender.start) out += start_table(contender);
  if (report.contenders.size() < 2) return out;
  const ThroughputRatio ratio = ratio_of(report);
  return out + fmt::format(
                   "{}: {} times the throughput, 95 % confidence {} to {}\n"
                   "(bootstrap of the median over {} rounds of paired ratios)\n",
                   report.contenders[1].name, ratio_text(ratio.median),
                   ratio_text(ratio.interval.low), ratio_text(ratio.interval.high),
                   first.times.round_seconds.size());
}

}  // namespace fullbore

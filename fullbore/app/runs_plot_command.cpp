#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/app/runs_command.h"
#include "fullbore/base/text.h"
#include "fullbore/lab/runs/run_curves.h"
#include "fullbore/lab/runs/run_folder.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/text_chart.h"

namespace fullbore {
namespace {

struct PlotArguments {
  std::vector<std::string> runs;
  std::vector<std::string> metrics;
  std::string by = "step";
  double smooth = 0;
  std::string svg;
  bool force = false;
};

struct NamedCurves {
  std::string name;
  RunCurves curves;
};

std::vector<NamedCurves> read_all(const std::vector<std::string>& paths) {
  std::vector<NamedCurves> all;
  for (const std::string& path : paths) {
    const RunFolder run = look_at_run(path);
    RunCurves curves = read_run_curves(run.path).take_or_throw();
    for (const std::string& problem : curves.problems) print_message("runs: {}\n", problem);
    all.push_back({run.name, std::move(curves)});
  }
  return all;
}

void check_metric(const std::vector<NamedCurves>& runs, const std::string& metric) {
  std::set<std::string> known;
  for (const NamedCurves& run : runs)
    for (const std::string& name : run.curves.names()) known.insert(name);
  if (known.contains(metric)) return;
  const std::vector<std::string> names(known.begin(), known.end());
  throw UsageError(fmt::format("runs: no run has a metric '{}'.{} There are {}", metric,
                               did_you_mean(metric, names),
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

/// Without a metric the losses; a run that judges by others has those too.
std::vector<std::string> chosen_metrics(const PlotArguments& arguments,
                                        const std::vector<NamedCurves>& runs) {
  if (!arguments.metrics.empty()) {
    for (const std::string& metric : arguments.metrics) check_metric(runs, metric);
    return arguments.metrics;
  }
  std::vector<std::string> metrics;
  for (const char* metric : {"loss", "validation_loss"})
    if (std::ranges::any_of(
            runs, [&](const NamedCurves& run) { return run.curves.curves.contains(metric); }))
      metrics.emplace_back(metric);
  return metrics;
}

ExitCode run_plot(const PlotArguments& arguments) {
  if (!arguments.svg.empty()) {
    check_output_file(arguments.svg);
    refuse_existing(arguments.svg, arguments.force);
  }
  const std::vector<NamedCurves> runs = read_all(arguments.runs);
  const std::vector<std::string> metrics = chosen_metrics(arguments, runs);
  const CurveAxis axis = arguments.by == "step" ? CurveAxis::step : CurveAxis::time;
  std::vector<ChartCurve> curves;
  for (const NamedCurves& run : runs)
    for (const std::string& metric : metrics)
      if (run.curves.curves.contains(metric))
        curves.push_back(chart_curve(run.curves, metric,
                                     runs.size() == 1      ? metric
                                     : metrics.size() == 1 ? run.name
                                                           : run.name + ' ' + metric,
                                     axis, arguments.smooth));
  if (curves.empty()) throw DataError("runs: nothing was recorded yet");
  const ChartText text = {metrics.size() == 1 ? metrics.front() : "",
                          axis == CurveAxis::step ? "step" : "seconds", ""};
  if (!arguments.svg.empty()) {
    write_output_file(arguments.svg, curves_svg(text, curves));
    return ExitCode::kOk;
  }
  const Console console(1);
  write_output(curves_text(text, curves, {.columns = std::min(console.width(), 160), .rows = 19},
                           console.terminal() ? console.style() : TextStyle()));
  return ExitCode::kOk;
}

}  // namespace

void add_runs_plot_command(Command runs) {
  Command command = runs.add_subcommand("plot", "Draw curves of runs");
  auto arguments = std::make_shared<PlotArguments>();
  command.add_option("RUN", arguments->runs, "Folders of runs").required();
  command
      .add_option("--metric", arguments->metrics,
                  "Of metrics.jsonl; by default loss and validation_loss")
      .one_value_each_time();
  command.add_option("--by", arguments->by, "What runs to the right")
      .one_of({"step", "time"})
      .shows_default();
  command
      .add_option("--smooth", arguments->smooth,
                  "Mean of earlier values, whose weights halve every so many points")
      .between(0.0, 1e6)
      .shows_default();
  command.add_option("--svg", arguments->svg, "Write a picture to this file instead");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(
      "\nTime is that of the run, pauses between its starts left out.\n"
      "\nExample:\n"
      "  fullbore runs plot runs/default-1 runs/default-2 --metric validation_loss\n"
      "  fullbore runs plot runs/default-1 --by time --smooth 10 --svg loss.svg");
  command.runs([arguments] { return run_plot(*arguments); });
}

}  // namespace fullbore

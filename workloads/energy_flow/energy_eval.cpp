#include "workloads/energy_flow/energy_eval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fullbore/app/json_text.h"
#include "fullbore/app/mean_intervals.h"
#include "fullbore/app/output.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/error.h"
#include "fullbore/monitor/console.h"
#include "workloads/energy_flow/bridge_eval.h"
#include "workloads/energy_flow/bridge_measure.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/flow_measure.h"
#include "workloads/energy_flow/held_out_pairs.h"

namespace fullbore::energy_flow {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kCorpusPairs = 2000;
constexpr const char* kAsTrained = "run";
const std::vector<std::string> kStepColumns = {"active", "left",    "projected", "reflected",
                                               "wanted", "spawned", "remaining"};

struct EnergyEvalArguments {
  int64_t pairs = 0;
  std::string stop_scope = kAsTrained;
};

/// All that is told of a model.
struct Report {
  FlowMeasure measure;
  /// In the order of FlowScore; behind these, what the model's error has less than the input's and the mean's.
  std::vector<MeanInterval> intervals;
  BootstrapOptions bootstrap;
  /// With a text bridge: the words that what is written shares with the target's text.
  std::vector<MeanInterval> overlap = {};
};
constexpr size_t kModelFromInput = kFlowScores;
constexpr size_t kModelFromMean = kFlowScores + 1;

std::vector<MeanInterval> intervals_of(const FlowMeasure& measure,
                                       const BootstrapOptions& bootstrap) {
  std::vector<std::vector<double>> columns(measure.scores.begin(), measure.scores.end());
  for (const FlowScore other : {FlowScore::input_error, FlowScore::mean_error}) {
    std::vector<double> differences = measure.of(FlowScore::model_error);
    for (size_t i = 0; i < differences.size(); ++i) differences[i] -= measure.of(other)[i];
    columns.push_back(std::move(differences));
  }
  return mean_intervals(columns, bootstrap);
}

std::string error_text(const MeanInterval& interval) {
  return fmt::format("{:>9.5f}  [{:.5f}, {:.5f}]", interval.mean, interval.low, interval.high);
}

std::string scope_text(const LatticeOptions& lattice, int64_t batch) {
  if (!lattice.stop.on) return "none: flows go on until they have ended";
  if (lattice.stop.per_sample) return "sample";
  return fmt::format("batch of {}: a pair's result depends on its companions (--stop-scope sample)",
                     batch);
}

void print_population(const FlowMeasure& measure) {
  const Population& flows = measure.population;
  print_output("{:<24}{:.2f}\n", "steps", measure.steps);
  print_output(
      "{:<24}{} injected{}, {} spawned, {} dropped{}\n", "flows", flows.injected,
      flows.not_injected > 0 ? fmt::format(" ({} more had no room)", flows.not_injected) : "",
      flows.spawned, flows.dropped,
      flows.dropped > 0 ? ": for want of room, which companions took" : "");
  print_output("{:<24}{:.1f} %: {} left, {} projected; {} projected when steps ended\n",
               "completed", 100 * flows.completed_share(), flows.exits, flows.projected,
               flows.projected_on_stop);
  std::vector<std::string> causes;
  for (const auto& [cause, count] : flows.dead)
    causes.push_back(fmt::format("{} {}", count, cause));
  if (!causes.empty()) print_output("{:<24}{}\n", "dead", fmt::join(causes, ", "));
  if (flows.active > 0) print_output("{:<24}{}, not counted\n", "active at the end", flows.active);
}

void print_report(const TrainedFlows& model, const HeldOutPairs& data,
                  const LatticeOptions& lattice, int64_t batch, const Report& report) {
  print_output("{:<24}{} (step {})\n", "checkpoint", model.path, model.step);
  print_output("{:<24}{}\n", "pairs", data.about);
  print_output("{:<24}{}\n\n", "stop scope", scope_text(lattice, batch));
  print_output("{:<24}{:>9}  {:<20}  cosine\n", "", "error",
               fmt::format("{:.0f} % interval", 100 * report.bootstrap.confidence));
  const auto row = [&](const char* name, FlowScore error, FlowScore cosine) {
    print_output("{:<24}{}  {:.4f}\n", name,
                 error_text(report.intervals[static_cast<size_t>(error)]),
                 report.intervals[static_cast<size_t>(cosine)].mean);
  };
  row("model", FlowScore::model_error, FlowScore::model_cosine);
  row("input's own surface", FlowScore::input_error, FlowScore::input_cosine);
  row("mean of training targets", FlowScore::mean_error, FlowScore::mean_cosine);
  print_output("{:<24}{}  paired\n", "model - input",
               error_text(report.intervals[kModelFromInput]));
  print_output("{:<24}{}  paired\n\n", "model - mean",
               error_text(report.intervals[kModelFromMean]));
  for (const MeanInterval& overlap : report.overlap)
    print_output("{:<24}{}  of words with the target's text\n\n", "overlap", error_text(overlap));
  print_population(report.measure);
}

Json interval_json(const MeanInterval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

Json population_json(const FlowMeasure& measure) {
  const Population& flows = measure.population;
  Json dead = Json::object();
  for (const auto& [cause, count] : flows.dead) dead[cause] = count;
  Json by_step = Json::array();
  for (const std::vector<int64_t>& counts : flows.by_step) {
    Json step;
    for (size_t i = 0; i < kStepColumns.size(); ++i) step[kStepColumns[i]] = counts[i];
    for (size_t i = 0; i < flows.dead.size(); ++i)
      step["dead_" + flows.dead[i].first] = counts[kStepColumns.size() + i];
    by_step.push_back(std::move(step));
  }
  return {{"injected", flows.injected},
          {"not_injected", flows.not_injected},
          {"created", flows.created},
          {"spawned", flows.spawned},
          {"dropped", flows.dropped},
          {"left", flows.exits},
          {"projected", flows.projected},
          {"projected_on_stop", flows.projected_on_stop},
          {"dead", std::move(dead)},
          {"active", flows.active},
          {"completed", flows.completed_share()},
          {"unaccounted", flows.unaccounted()},
          {"by_step", std::move(by_step)}};
}

Json report_json(const TrainedFlows& model, const HeldOutPairs& data, const LatticeOptions& lattice,
                 int64_t batch, const Report& report) {
  const auto of = [&](FlowScore score) {
    return interval_json(report.intervals[static_cast<size_t>(score)]);
  };
  return {{"checkpoint", model.path},
          {"step", model.step},
          {"data", data.name},
          {"pairs", data.examples.count},
          {"training_pairs", data.trained_on},
          {"training_pairs_of_mean", data.training.count},
          {"stop_scope", !lattice.stop.on          ? "none"
                         : lattice.stop.per_sample ? "sample"
                                                   : "batch"},
          {"batch", batch},
          {"error",
           {{"model", of(FlowScore::model_error)},
            {"input", of(FlowScore::input_error)},
            {"training_mean", of(FlowScore::mean_error)},
            {"model_minus_input", interval_json(report.intervals[kModelFromInput])},
            {"model_minus_mean", interval_json(report.intervals[kModelFromMean])}}},
          {"cosine",
           {{"model", of(FlowScore::model_cosine)},
            {"input", of(FlowScore::input_cosine)},
            {"training_mean", of(FlowScore::mean_cosine)}}},
          {"bootstrap",
           {{"resamples", report.bootstrap.resamples},
            {"confidence", report.bootstrap.confidence},
            {"key", report.bootstrap.key}}},
          {"steps", report.measure.steps},
          {"flows", population_json(report.measure)}};
}

ExitCode eval_flows(const EvalRequest& request, const EnergyEvalArguments& arguments) {
  TrainedFlows model = load_flows(request.subject);
  const Config& config = model.config;
  Console console;
  const int64_t batch = std::max<int64_t>(
      1, config.train.batch_size / (config.engine.accumulate *
                                    std::max<int64_t>(1, config.engine.parallel_microbatches)));
  int64_t most = arguments.pairs;
  // The corpus has no end.
  if (most == 0 && request.data.empty() && config.data.path.empty()) most = kCorpusPairs;
  if (request.batches > 0) {
    const int64_t rows = request.batches * config.train.batch_size;
    most = most > 0 ? std::min(most, rows) : rows;
  }
  const HeldOutPairs data = held_out_pairs(config, {.path = request.data, .most = most}, console);
  LatticeOptions lattice = lattice_options(config);
  if (arguments.stop_scope != kAsTrained)
    lattice.stop.per_sample = arguments.stop_scope == "sample";
  const std::vector<float> mean = mean_target_surface(model, data.training);
  Report report;
  report.measure = measure_flows(model, lattice, data.examples, batch, mean, [&](int64_t done) {
    if (console.live_due())
      console.live(fmt::format("evaluating {}/{} pairs", done, data.examples.count));
  });
  console.clear();
  report.intervals = intervals_of(report.measure, report.bootstrap);
  if (has_bridge(config) && data.examples.pairs->has_texts()) {
    TrainedBridge bridge(request.subject, {.batch = batch, .beams = 1, .length = 0, .cached = 0});
    const std::vector<std::vector<double>> overlaps = {measure_overlap(
        bridge, data.examples, {.temperature = 1, .correction_steps = 0}, [&](int64_t done) {
          if (console.live_due())
            console.live(fmt::format("writing {}/{} texts", done, data.examples.count));
        })};
    console.clear();
    report.overlap = mean_intervals(overlaps, report.bootstrap);
  }
  if (request.json) {
    Json json = report_json(model, data, lattice, batch, report);
    for (const MeanInterval& overlap : report.overlap)
      json["word_overlap"] = interval_json(overlap);
    write_output(json_text(json));
  } else
    print_report(model, data, lattice, batch, report);
  const double error = report.intervals[static_cast<size_t>(FlowScore::model_error)].mean;
  if (!std::isfinite(error)) throw NumericalError(fmt::format("eval: the error is {}", error));
  return ExitCode::kOk;
}

ExitCode eval_model(const EvalRequest& request, const EnergyEvalArguments& arguments) {
  if (stored_config(open_checkpoint(request.subject), false).model.name != "energy_bridge")
    return eval_flows(request, arguments);
  if (arguments.stop_scope != kAsTrained)
    throw UsageError("eval: --stop-scope is for lattices; energy_bridge has none");
  return eval_bridge(request, arguments.pairs);
}

void add_own_options(Command command, EnergyEvalArguments& arguments) {
  command
      .add_option("--pairs", arguments.pairs,
                  "Of energy flow: at most so many pairs; by default 2000 of the synthetic corpus, "
                  "which stand behind those that were trained on, or all")
      .between(int64_t{1}, int64_t{1} << 30);
  command
      .add_option("--stop-scope", arguments.stop_scope,
                  "Of energy flow: steps end by batch or by sample, where a result does not depend "
                  "on its companions; or as the run has it")
      .one_of({kAsTrained, "batch", "sample"})
      .shows_default();
}

}  // namespace

EvalKind add_energy_eval(Command eval) {
  auto arguments = std::make_shared<EnergyEvalArguments>();
  add_own_options(eval, *arguments);
  EvalKind kind;
  kind.models = {"energy_flow", "energy_bridge"};
  kind.refuse = [arguments] {
    if (arguments->pairs > 0) throw UsageError("eval: --pairs is for energy flow");
    if (arguments->stop_scope != kAsTrained)
      throw UsageError("eval: --stop-scope is for energy flow");
  };
  kind.run = [arguments](const EvalRequest& request) { return eval_model(request, *arguments); };
  kind.examples = {"eval runs/energy-1 --pairs 500 --stop-scope sample"};
  return kind;
}

void add_energy_eval_command(Command energy) {
  Command command = energy.add_subcommand("eval", "Measure a trained lattice of flows");
  auto request = std::make_shared<EvalRequest>();
  auto arguments = std::make_shared<EnergyEvalArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", request->subject,
                  "Run directory (its best checkpoint) or a checkpoint")
      .required();
  command.add_option("--data", request->data,
                     "Pairs to measure on, all of them; by default what the run held out");
  command.add_option("--batches", request->batches, "At most so many batches; 0: all")
      .between(int64_t{0}, int64_t{1} << 40);
  add_own_options(command, *arguments);
  command.add_flag("--json", request->json, "Print JSON");
  command.footer(R"(
The error of a pair is the mean over the cells of the squared difference between the surface that comes out
and that of the target. Beside the model's stand those of the input's own surface and of the mean of the
training pairs' targets. Intervals are bootstrapped over pairs; those of differences draw both together.
`fullbore eval` does the same.

Exit codes: 2 another model, or nothing held out; 3 no checkpoint, one of another geometry, or pairs that
cannot be read; 4 an error that is no number.

Example:
  fullbore energy eval runs/energy-1
  fullbore energy eval runs/energy-1 --data pairs.efb --stop-scope sample --json)");
  command.runs([request, arguments] { return eval_model(*request, *arguments); });
}

}  // namespace fullbore::energy_flow

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "fullbore/app/commands.h"
#include "fullbore/app/held_out_items.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/margins.h"
#include "fullbore/app/output.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/lab/quality/item_comparison.h"
#include "fullbore/train/run_checkpoints.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

struct EvalArguments {
  EvalRequest request;
  std::vector<EvalKind> kinds;
  JudgeArguments judge;
};

Config config_of(const std::string& checkpoint) {
  return parse_stored_config(open_checkpoint(checkpoint).record.config, checkpoint).config;
}

/// Who measures it. DataError for what is neither a file that somebody reads nor a run or checkpoint.
const EvalKind& kind_of(const EvalArguments& arguments) {
  const std::string& subject = arguments.request.subject;
  for (const EvalKind& kind : arguments.kinds)
    if (kind.reads_file && kind.reads_file(subject)) return kind;
  const std::string model = config_of(subject).model.name;
  for (const EvalKind& kind : arguments.kinds)
    if (std::ranges::find(kind.models, model) != kind.models.end()) return kind;
  static const EvalKind kByEvaluations;  // nobody's own
  if (!arguments.request.against.empty()) return kByEvaluations;
  throw UsageError(fmt::format("eval: nothing measures a {} model", model));
}

/// Runs of several seeds hold out other items of made-up data. Then the baseline is measured on those of the subject: if
/// it has learned from some of them it looks better than it is, and nothing passes that should not. False: not even
/// that makes them the same.
bool measure_on_items_of(const MeasuredItems& first, const Config& subject, const Config& baseline,
                         const EvalRequest& request, MeasuredItems& second) {
  if (subject.run.seed == baseline.run.seed || !request.data.empty() ||
      !request.frozen_from.empty())
    return false;
  EvalRequest one = request;
  one.subject = request.against;
  MeasuredItems moved = measure_held_out(one, subject.run.seed);
  if (moved.keys != first.keys) return false;
  second = std::move(moved);
  return true;
}

/// The subject against another, item by item.
ExitCode compare(const EvalArguments& arguments, const EvalKind& kind) {
  const EvalRequest& request = arguments.request;
  if (kind.compares && kind.compares(request)) return kind.compare(request, arguments.judge);
  const Config subject = config_of(request.subject), baseline = config_of(request.against);
  if (subject.model.name != baseline.model.name)
    throw UsageError(
        fmt::format("eval: {} is of a {} model and {} of a {} model; two of a kind "
                    "were expected",
                    request.subject, subject.model.name, request.against, baseline.model.name));
  const QualityMetrics metrics = judged_metrics(baseline, arguments.judge);
  const auto measure = [&](const std::string& of) {
    EvalRequest one = request;
    one.subject = of;
    return kind.items ? kind.items(one) : measure_held_out(one);
  };
  const MeasuredItems first = measure(request.subject);
  MeasuredItems second = measure(request.against);
  const bool moved =
      first.keys != second.keys && measure_on_items_of(first, subject, baseline, request, second);
  ItemComparison comparison = compare_items(first, second, metrics, arguments.judge.options);
  if (moved)
    comparison.notes.push_back(
        fmt::format("both are measured on what {} held out, by run.seed {}: {}, of run.seed {}, "
                    "may have learned from some of it",
                    first.subject, subject.run.seed, second.subject, baseline.run.seed));
  if (request.json)
    write_output(json_text(comparison_json(comparison)));
  else
    print_output("{}", comparison_text(comparison));
  return exit_code_of(comparison.test.verdict);
}

ExitCode run_eval(const EvalArguments& arguments) {
  const EvalKind& kind = kind_of(arguments);
  for (const EvalKind& other : arguments.kinds)
    if (&other != &kind && other.refuse) other.refuse();
  if (!arguments.request.frozen_from.empty() && !kind.takes_frozen)
    throw UsageError("eval: --frozen-from is for models that read frozen weights");
  if (!arguments.request.against.empty()) return compare(arguments, kind);
  if (!arguments.judge.margins.empty())
    throw UsageError("eval: --margin is for a comparison; name the other model by --against");
  return kind.run(arguments.request);
}

}  // namespace

void add_eval_command(Command root) {
  Command command = root.add_subcommand("eval", "Measure a trained model, or what it predicted");
  auto arguments = std::make_shared<EvalArguments>();
  EvalRequest& request = arguments->request;
  command
      .add_option("RUN_OR_CHECKPOINT", request.subject,
                  "Run directory (its best checkpoint) or a checkpoint; or a file of predictions "
                  "that a workload reads")
      .required();
  command.add_option("--data", request.data,
                     "Data to measure on, all of it; by default what the run held out");
  command.add_option("--against", request.against,
                     "Another model, or other predictions: is the first no worse, on the very same "
                     "items?");
  add_judge_options(command, arguments->judge);
  add_frozen_option(command, request.frozen_from);
  command.add_option("--batches", request.batches, "At most so many batches; 0: all")
      .between(int64_t{0}, int64_t{1} << 40);
  for (const Workload& workload : workloads())
    if (workload.add_eval) arguments->kinds.push_back(workload.add_eval(command));
  command.add_flag("--json", request.json, "Print JSON");
  std::string footer =
      "\n--against pairs both models item by item and decides by the margins that the kind of "
      "model "
      "has (lab gate\n--help): of these two, not of what other seeds would have made of them.\n"
      "\nExit codes of --against: 0 no worse, 4 worse, 7 undecided.\n"
      "\nExample:\n  fullbore eval runs/mine-1\n  fullbore eval runs/mine-1/checkpoints/last"
      "\n  fullbore eval runs/mine-2 --against runs/mine-1";
  for (const EvalKind& kind : arguments->kinds)
    for (const std::string& example : kind.examples) footer += "\n  fullbore " + example;
  command.footer(footer);
  command.runs([arguments] { return run_eval(*arguments); });
}

}  // namespace fullbore

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "fullbore/app/commands.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/train/run_checkpoints.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

struct EvalArguments {
  EvalRequest request;
  std::vector<EvalKind> kinds;
};

/// Who measures it. DataError for what is neither a file that somebody reads nor a run or checkpoint.
const EvalKind& kind_of(const EvalArguments& arguments) {
  const std::string& subject = arguments.request.subject;
  for (const EvalKind& kind : arguments.kinds)
    if (kind.reads_file && kind.reads_file(subject)) return kind;
  const OpenedCheckpoint checkpoint = open_checkpoint(subject);
  const std::string model =
      parse_stored_config(checkpoint.record.config, subject).config.model.name;
  for (const EvalKind& kind : arguments.kinds)
    if (std::ranges::find(kind.models, model) != kind.models.end()) return kind;
  throw UsageError(fmt::format("eval: nothing measures a {} model", model));
}

ExitCode run_eval(const EvalArguments& arguments) {
  const EvalKind& kind = kind_of(arguments);
  for (const EvalKind& other : arguments.kinds)
    if (&other != &kind && other.refuse) other.refuse();
  if (!arguments.request.frozen_from.empty() && !kind.takes_frozen)
    throw UsageError("eval: --frozen-from is for models that read frozen weights");
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
  add_frozen_option(command, request.frozen_from);
  command.add_option("--batches", request.batches, "At most so many batches; 0: all")
      .between(int64_t{0}, int64_t{1} << 40);
  for (const Workload& workload : workloads())
    if (workload.add_eval) arguments->kinds.push_back(workload.add_eval(command));
  command.add_flag("--json", request.json, "Print JSON");
  std::string footer =
      "\nExample:\n  fullbore eval runs/mine-1\n  fullbore eval runs/mine-1/checkpoints/last";
  for (const EvalKind& kind : arguments->kinds)
    for (const std::string& example : kind.examples) footer += "\n  fullbore " + example;
  command.footer(footer);
  command.runs([arguments] { return run_eval(*arguments); });
}

}  // namespace fullbore

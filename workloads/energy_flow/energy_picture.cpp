#include "workloads/energy_flow/energy_picture.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/flow_picture.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {
namespace {

constexpr const char* kFile = "flows.svg";

struct PictureArguments {
  std::string subject;
  std::string output;
  std::string data;
  int64_t pair = 0;
  int64_t flows = 400;
  bool force = false;
};

/// "runs/a/checkpoints/best (step 600): a red cat sings by the river > a cat sings"
std::string about(const TrainedFlows& model, const std::string& file, int64_t pair) {
  std::string text = fmt::format("{} (step {}): ", model.path, model.step);
  if (!file.empty()) return text + fmt::format("pair {} of {}", pair, file);
  const SentencePair sentences =
      sentence_pair(static_cast<uint64_t>(energy_keys(model.config).data.corpus_key),
                    static_cast<uint64_t>(pair));
  return text + fmt::format("{} > {}", sentences.premise, sentences.hypothesis);
}

struct Drawn {
  std::string svg;
  size_t flows = 0;
  int64_t steps = 0;
};

Drawn draw(const PictureArguments& arguments, Console& console) {
  TrainedFlows model = load_flows(arguments.subject);
  const HeldOutPairs data = held_out_pairs(
      model.config, {.path = arguments.data, .first = arguments.pair, .most = 1, .training = false},
      console);
  if (data.examples.count == 0)
    throw UsageError(fmt::format("energy picture: --pair {}: {} has no such pair, from 0 on",
                                 arguments.pair, data.name));
  const std::string& file = arguments.data.empty() ? model.config.data.path : arguments.data;
  // Of the corpus each pair is made by its number.
  const int64_t pair =
      file.empty() ? energy_keys(model.config).data.pairs + arguments.pair : data.examples.first;
  const FlowHistory history = record_flows(model, data.examples, 0);
  return {flow_picture_svg(history, about(model, file, pair), static_cast<size_t>(arguments.flows)),
          history.paths.size(), history.steps};
}

ExitCode run_picture(const PictureArguments& arguments) {
  if (arguments.output != "-") {
    check_output_file(arguments.output);
    refuse_existing(arguments.output, arguments.force);
  }
  Console console;
  const Drawn drawn = draw(arguments, console);
  console.clear();
  write_output_file(arguments.output, drawn.svg);
  if (arguments.output != "-")
    print_output("{}: {} flows, {} step{}\n", arguments.output, drawn.flows, drawn.steps,
                 drawn.steps == 1 ? "" : "s");
  return ExitCode::kOk;
}

}  // namespace

void add_energy_picture_command(Command energy) {
  Command command =
      energy.add_subcommand("picture", "Draw the flows of one pair through a trained lattice");
  auto arguments = std::make_shared<PictureArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->subject,
                  "Run directory (its best checkpoint) or a checkpoint")
      .required();
  command.add_option("-o,--output", arguments->output, "The SVG to write; -: standard output")
      .required();
  command.add_option("--data", arguments->data, "Pairs; by default those that the run held out");
  command.add_option("--pair", arguments->pair, "Which of them")
      .between(int64_t{0}, int64_t{1} << 30)
      .shows_default();
  command.add_option("--flows", arguments->flows, "Draw the ways of at most so many flows")
      .between(int64_t{1}, int64_t{100000})
      .shows_default();
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Shows the ways of flows from the side and along z, how many there were in each step and what became of them,
and the surfaces of the input, of what came out and of the target. A run that is done has such a picture of
its first pair in its folder: flows.svg.

Example:
  fullbore energy picture runs/energy-1 -o flows.svg --pair 3)");
  command.runs([arguments] { return run_picture(*arguments); });
}

void keep_picture(const RunDirectory& run, const PairRange& pairs, Console& console) {
  const std::string path = run.path() + '/' + kFile;
  try {
    TrainedFlows model = load_flows(run.path(), /*tells=*/false);
    const FlowHistory history = record_flows(model, pairs, 0);
    const std::string svg =
        flow_picture_svg(history, about(model, model.config.data.path, pairs.first));
    // A stranger's folder may have a link there: it is replaced, and nothing is written where it leads.
    write_file_atomically(path, svg).take_or_throw();
    console.line(fmt::format("picture  {}", path));
  } catch (const Error& error) {
    console.line(fmt::format("picture  none: {}", error.what()));
  }
}

}  // namespace fullbore::energy_flow

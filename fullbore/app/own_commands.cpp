#include "fullbore/app/own_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/held_out_items.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/ckpt/checkpoint.h"
#include "fullbore/train/default_job.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {
namespace {

struct ExportArguments {
  std::string run;
  std::string output;
};

double mean_of(const ItemColumn& column) {
  double sum = 0, weight = 0;
  for (size_t i = 0; i < column.values.size(); ++i) {
    sum += column.values[i] * column.weights[i];
    weight += column.weights[i];
  }
  return sum / weight;
}

ExitCode run_eval(const EvalRequest& request) {
  if (!request.data.empty())
    throw UsageError("eval: this program measures what it holds out itself; leave --data out");
  const MeasuredItems items = measure_held_out(request);
  nlohmann::ordered_json json = {{"checkpoint", items.subject}, {"batches", items.keys.size()}};
  std::string text = fmt::format("{}: {} batches\n", items.subject, items.keys.size());
  for (const ItemColumn& column : items.columns) {
    const double mean = mean_of(column);
    json[column.metric] = mean;
    text += fmt::format("  {:<20} {:.6g}\n", column.metric, mean);
  }
  if (request.json)
    write_output(json_text(json));
  else
    print_output("{}", text);
  return ExitCode::kOk;
}

ExitCode run_export(const ExportArguments& arguments) {
  const OpenedCheckpoint checkpoint = open_checkpoint(arguments.run);
  const Config config = stored_config(checkpoint);
  choose_processor(config);
  choose_caches(config);
  Console console;
  const OpenedWorkload workload = open_workload(config, console);
  const TrainingJob job = workload.job(config);
  const TracedStep traced = trace_evaluation(job.loss, job.training->shapes().front());
  State state = trained_state(checkpoint, config, trained_entries(checkpoint, traced.graph),
                              open_job_device(config), job.frozen.get());
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<std::byte>> values;
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (!is_weight(entry)) continue;
    values.emplace_back(static_cast<size_t>(entry.type.bytes()));
    state.read(static_cast<int>(i), values.back());
    tensors.push_back({entry.name, entry.type, values.back().data()});
  }
  write_checkpoint(arguments.output, tensors, {{"model", config.model.name}}).take_or_throw();
  print_output("{}: {} tensors of step {} of {}\n", arguments.output, tensors.size(),
               checkpoint.record.step, checkpoint.folder.path());
  return ExitCode::kOk;
}

const CommandDescription* find_command(const CommandDescription& in, const std::string& name) {
  const auto found = std::ranges::find(in.subcommands, name, &CommandDescription::name);
  return found == in.subcommands.end() ? nullptr : &*found;
}

bool takes_value(const CommandDescription& command, const std::string& word) {
  return std::ranges::any_of(command.options, [&](const OptionDescription& option) {
    const auto is = [&](const std::string& dashes, const std::vector<std::string>& names) {
      return std::ranges::any_of(names,
                                 [&](const std::string& name) { return dashes + name == word; });
    };
    return option.takes_value && (is("--", option.long_names) || is("-", option.short_names));
  });
}

}  // namespace

EvalKind own_eval(const OwnModel& model) {
  EvalKind kind;
  kind.models = {model.name};
  kind.run = run_eval;
  return kind;
}

void add_own_export_command(Command root) {
  Command command =
      root.add_subcommand("export", "Write the weights of a trained model as a safetensors file");
  auto arguments = std::make_shared<ExportArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->run,
                  "Run directory (its best checkpoint) or a checkpoint")
      .required();
  command.add_option("-o,--output", arguments->output, "File to write").required();
  command.footer(R"(
Tensors have the names of the model's parameters and their layout: a linear layer's weight is [outputs, inputs], as in
PyTorch, and running statistics are among them. Where train.evaluate is ema they are the moving averages. The way back is
model.initialize_from=FILE.

Example:
  fullbore export runs/mine-1 -o mine.safetensors

Exit codes: 0 written, 2 wrong arguments, 3 checkpoint missing or damaged, file not writable.)");
  command.runs([arguments] { return run_export(*arguments); });
}

std::vector<std::string> with_default_job(const CommandDescription& root,
                                          std::vector<std::string> words) {
  const CommandDescription* command = &root;
  size_t at = 0;
  while (at < words.size()) {
    const CommandDescription* const inner = find_command(*command, words[at]);
    if (inner == nullptr) break;
    command = inner;
    ++at;
  }
  const auto first = std::ranges::find_if(
      command->options, [](const OptionDescription& option) { return !option.positional.empty(); });
  if (first == command->options.end() || !first->positional.starts_with("CONFIG")) return words;
  const auto place = words.begin() + static_cast<std::ptrdiff_t>(at);
  if (std::ranges::find(place, words.end(), "--help") != words.end() ||
      std::ranges::find(place, words.end(), "-h") != words.end())
    return words;
  auto word = place;
  while (word != words.end() && word->starts_with('-'))
    word += takes_value(*command, *word) && word + 1 != words.end() ? 2 : 1;
  const bool is_given = word != words.end() &&
                        (word->find('=') == std::string::npos || std::filesystem::exists(*word));
  if (!is_given) words.insert(word, kDefaultJob);
  return words;
}

}  // namespace fullbore

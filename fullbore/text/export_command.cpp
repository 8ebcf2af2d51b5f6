#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "fullbore/app/output.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/runtime/quantized_state.h"
#include "fullbore/text/int8_export.h"
#include "fullbore/text/text_commands.h"
#include "fullbore/text/text_model.h"
#include "fullbore/text/trained_text_model.h"

namespace fullbore {
namespace {

struct ExportArguments {
  std::optional<std::string> format;
  bool int8 = false;
  Int8ExportOptions options;
};

// An option that would do nothing is a mistake.
void check_options(const ExportArguments& arguments) {
  const Int8ExportOptions& given = arguments.options;
  const Int8ExportOptions usual;
  if (arguments.int8 && arguments.format)
    throw UsageError("export: --int8 writes a layout of its own; leave --format out");
  if (arguments.int8) return;
  const bool any = given.gate != usual.gate || given.batches != usual.batches ||
                   given.smallest != usual.smallest || !given.data.empty() || !given.keep.empty();
  if (any)
    throw UsageError("export: --gate, --data, --batches, --smallest and --keep are of --int8");
}

/// That any model has.
std::vector<std::string> layouts() {
  std::set<std::string> names;
  for (const TextModel& model : text_models()) {
    if (model.layout) names.insert(model.layout->name);
    for (const ForeignLayout& layout : model.file_layouts) names.insert(layout.name);
  }
  return {names.begin(), names.end()};
}

std::string about_layouts() {
  std::string text;
  std::set<std::string> told;
  const auto tell = [&](const ForeignLayout& layout) {
    if (told.insert(layout.name).second) text += fmt::format("\n{}: {}", layout.name, layout.about);
  };
  for (const TextModel& model : text_models()) {
    if (model.layout) tell(*model.layout);
    for (const ForeignLayout& layout : model.file_layouts) tell(layout);
  }
  return text;
}

/// Of that name, or without one the model's own; null: it has none.
const ForeignLayout* layout_of(const TextModel& model, const std::optional<std::string>& name) {
  if (model.layout && name.value_or(model.layout->name) == model.layout->name)
    return &*model.layout;
  const auto found = std::ranges::find_if(
      model.file_layouts, [&](const ForeignLayout& layout) { return layout.name == name; });
  return found == model.file_layouts.end() ? nullptr : &*found;
}

ExitCode run_export(const ExportArguments& all) {
  check_options(all);
  const Int8ExportOptions& arguments = all.options;
  if (all.int8) {
    export_int8(arguments);
    return ExitCode::kOk;
  }
  const TrainedModel model = load_model(arguments.model, {.frozen_from = arguments.frozen_from});
  const ForeignLayout* const layout = layout_of(text_model(model.config), all.format);
  if (layout == nullptr)
    throw UsageError(
        fmt::format("{} is of a {} model, for which transformers has no class; its weights are in "
                    "weights.safetensors there",
                    model.path, model.config.model.name));
  if (!quantized_parameters(model.state).empty())
    throw UsageError(fmt::format(
        "export: {} is in 8 bits, which the layout has no place for; export the run itself",
        model.path));
  layout->write(model, arguments.output);
  print_output("{}: step {} of {}\n", arguments.output, model.step, model.path);
  return ExitCode::kOk;
}

}  // namespace

void add_export_command(Command root) {
  Command command =
      root.add_subcommand("export", "Write a trained model in a layout that other tools read");
  auto arguments = std::make_shared<ExportArguments>();
  Int8ExportOptions& options = arguments->options;
  command
      .add_option("RUN_OR_CHECKPOINT", options.model,
                  "Run directory (its best checkpoint) or .safetensors file")
      .required();
  Option format =
      command.add_option("--format", arguments->format,
                         "The layout: huggingface, unless --int8 is given; gguf, gguf-q8_0");
  // Without any, the model is told to have none.
  if (const std::vector<std::string> known = layouts(); !known.empty()) format.one_of(known);
  command.add_option("-o,--output", options.output, "Folder to write; a file of gguf").required();
  add_frozen_option(command, options.frozen_from);
  command.add_flag("--int8", arguments->int8,
                   "Instead: a checkpoint for eval and generate, with large matrices in 8 bits");
  command.add_option("--gate", options.gate, "Of --int8: nats that the held-out loss may rise by")
      .between(0.0, kMostInt8Gate)
      .shows_default();
  command.add_option("--data", options.data,
                     "Of --int8: text to measure on, all of it; by default what the run held out");
  command.add_option("--batches", options.batches, "Of --int8: at most so many batches; 0: all")
      .between(int64_t{0}, int64_t{1} << 40);
  command
      .add_option("--smallest", options.smallest,
                  "Of --int8: matrices with a smaller extent stay f32")
      .between(int64_t{1}, int64_t{1} << 40)
      .shows_default();
  command
      .add_option("--keep", options.keep,
                  "Of --int8: matrices that stay f32, by a pattern of their names; may be given "
                  "several times")
      .one_value_each_time();
  command.footer(
      about_layouts() +
      "\n--int8: a quarter of the bytes that a token reads. Every matrix W of a matmul x W^T has\n"
      "a scale for each row, every x one when it is used; a table that is the output head too is\n"
      "there in both forms. The losses before and after are measured; if the difference is more\n"
      "than --gate, nothing is written and the exit code is 4.\n"
      "\nExample:\n"
      "  fullbore export runs/default-1 --format huggingface -o exported\n"
      "  fullbore export --int8 runs/default-1 -o small && fullbore generate small");
  command.runs([arguments] { return run_export(*arguments); });
}

}  // namespace fullbore

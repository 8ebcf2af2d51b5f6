#include <fmt/format.h>

#include <memory>

#include "apps/commands.h"
#include "apps/language_model.h"
#include "fullbore/base/files.h"
#include "fullbore/data/bpe_tokenizer.h"
#include "models/huggingface_gpt2.h"

namespace fullbore {
namespace {

struct ExportArguments {
  std::string model;
  std::string format = "huggingface";
  std::string output;
};

ExitCode run_export(const ExportArguments& arguments) {
  const TrainedModel model = load_model(arguments.model);
  if (model.config.model.name != "gpt")
    throw UsageError(
        fmt::format("{} is of a {} model, for which transformers has no class; its weights are in "
                    "weights.safetensors there",
                    model.path, model.config.model.name));
  const LanguageModelConfig sizes = model_config(model.config, model.tokenizer->vocabulary_size());
  export_huggingface_gpt2(arguments.output, sizes, model.state);
  // A byte-level BPE is in transformers' own format already.
  const bool foreign = dynamic_cast<const BpeTokenizer*>(model.tokenizer.get()) != nullptr;
  const std::string tokenizer =
      arguments.output + (foreign ? "/tokenizer.json" : "/fullbore_tokenizer.json");
  const Status written = write_file_atomically(tokenizer, model.tokenizer->to_json());
  if (!written) throw DataError(written.error());
  fmt::print("{}: step {} of {}\n", arguments.output, model.step, model.path);
  return ExitCode::kOk;
}

}  // namespace

void add_export_command(Command root) {
  Command command =
      root.add_subcommand("export", "Write a trained model in a layout that other tools read");
  auto arguments = std::make_shared<ExportArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->model,
                  "Run directory (its best checkpoint) or .safetensors file")
      .required();
  command.add_option("--format", arguments->format, "The layout")
      .one_of({"huggingface"})
      .shows_default();
  command.add_option("-o,--output", arguments->output, "Folder to write").required();
  command.footer(
      "\nhuggingface: config.json and model.safetensors, which transformers reads as\n"
      "GPT2LMHeadModel.from_pretrained(FOLDER). The tokenizer goes beside them: a byte-level\n"
      "BPE as tokenizer.json, which transformers reads too, others as fullbore_tokenizer.json.\n"
      "The way back, to go on from such a folder, is\n"
      "`fullbore train CONFIG model.initialize_from=FOLDER`.\n"
      "\nExample:\n"
      "  fullbore export runs/default-1 --format huggingface -o exported");
  command.runs([arguments] { return run_export(*arguments); });
}

}  // namespace fullbore

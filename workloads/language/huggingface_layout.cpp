#include "workloads/language/huggingface_layout.h"

#include <fmt/format.h>

#include <memory>

#include "fullbore/base/files.h"
#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/weight_source.h"
#include "workloads/language/gpt_job.h"
#include "workloads/language/huggingface_gpt2.h"

namespace fullbore {
namespace {

InitialWeights read(const Config& config, const Tokenizer& tokenizer) {
  const std::string& folder = config.model.initialize_from;
  const LanguageModelConfig model = model_config(config, tokenizer.vocabulary_size());
  const auto source = std::make_shared<const HuggingFaceGpt2>(HuggingFaceGpt2::open(folder));
  source->check(model);
  InitialWeights weights;
  std::vector<std::string> renamed;
  for (const auto& [ours, theirs] : source->renamed(model))
    renamed.push_back(fmt::format("{} -> {}", theirs, ours));
  weights.lines = {
      fmt::format("weights  {} (GPT-2 in the Hugging Face layout): {} tensors taken, all renamed",
                  folder, renamed.size())};
  for (std::string& line : listed_lines("renamed", renamed))
    weights.lines.push_back(std::move(line));
  weights.fill = [source, model](State& state) { source->fill(model, state); };
  return weights;
}

void write(const TrainedModel& model, const std::string& folder) {
  const LanguageModelConfig sizes = model_config(model.config, model.tokenizer->vocabulary_size());
  export_huggingface_gpt2(folder, sizes, model.state);
  // A byte-level BPE is in transformers' own format already.
  const bool foreign = dynamic_cast<const BpeTokenizer*>(model.tokenizer.get()) != nullptr;
  const std::string tokenizer = folder + (foreign ? "/tokenizer.json" : "/fullbore_tokenizer.json");
  const Status written = write_file_atomically(tokenizer, model.tokenizer->to_json());
  if (!written) throw DataError(written.error());
}

}  // namespace

ForeignLayout huggingface_layout() {
  return {
      "huggingface",
      "config.json and model.safetensors, which transformers reads as\n"
      "GPT2LMHeadModel.from_pretrained(FOLDER). The tokenizer goes beside them: a byte-level\n"
      "BPE as tokenizer.json, which transformers reads too, others as fullbore_tokenizer.json.\n"
      "The way back, to go on from such a folder, is\n"
      "`fullbore train CONFIG model.initialize_from=FOLDER`.\n",
      write, read};
}

}  // namespace fullbore

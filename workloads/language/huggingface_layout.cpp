#include "workloads/language/huggingface_layout.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/weight_source.h"
#include "workloads/language/gpt_job.h"
#include "workloads/language/gpt_keys.h"
#include "workloads/language/huggingface_check.h"
#include "workloads/language/llama_keys.h"

namespace fullbore {
namespace {

InitialWeights read(const std::string& folder, const nn::DecoderConfig& model) {
  const auto source = std::make_shared<const HuggingFaceModel>(HuggingFaceModel::open(folder));
  check_huggingface(*source, model);
  InitialWeights weights;
  std::vector<std::string> renamed;
  for (const HuggingFaceName& name : source->names(model))
    renamed.push_back(fmt::format("{} -> {}", name.theirs, name.ours));
  weights.lines = {
      fmt::format("weights  {} ({} in the Hugging Face layout): {} tensors taken, all renamed",
                  folder, source->config().family, renamed.size())};
  for (std::string& line : listed_lines("renamed", renamed))
    weights.lines.push_back(std::move(line));
  weights.fill = [source, model](State& state) {
    source->fill(model, state, {"; set model.bias=true", "; set model.tie_head=false"});
  };
  return weights;
}

void write(const TrainedModel& model, const nn::DecoderConfig& sizes, const std::string& folder) {
  HuggingFaceConfig config{.family = huggingface_family(sizes), .decoder = sizes, .end_tokens = {}};
  if (const int32_t end = model.tokenizer->end_of_document(); end >= 0) config.end_tokens = {end};
  export_huggingface_model(folder, config, model.state);
  // A byte-level BPE is in transformers' own format already.
  const bool foreign = dynamic_cast<const BpeTokenizer*>(model.tokenizer.get()) != nullptr;
  const std::string tokenizer = folder + (foreign ? "/tokenizer.json" : "/fullbore_tokenizer.json");
  const Status written = write_file_atomically(tokenizer, model.tokenizer->to_json());
  if (!written) throw DataError(written.error());
}

/// Keys of the same model. DataError: a GPT-2 with settings that gpt.cpp has not.
Config config_of(const HuggingFaceModel& source) {
  const nn::DecoderConfig& decoder = source.config().decoder;
  Config config;
  text_keys(config).model = {.layers = decoder.layers,
                             .heads = decoder.heads,
                             .width = decoder.width,
                             .context = decoder.context,
                             .vocabulary = decoder.vocabulary};
  gpt_keys(config).tie_head = decoder.tie_head;
  if (decoder.style == nn::DecoderConfig::Style::llama) {
    config.model.name = "llama";
    set_llama_keys(config, decoder);
    return config;
  }
  config.model.name = "gpt";
  gpt_keys(config).bias = true;
  gpt_keys(config).activation = decoder.tanh_gelu ? "gelu_tanh" : "gelu";
  check_huggingface(source, decoder_config(model_config(config, decoder.vocabulary)));
  return config;
}

std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& folder) {
  const std::string own = folder + "/fullbore_tokenizer.json";
  std::error_code error;
  if (!std::filesystem::exists(own, error)) return load_tokenizer(folder).take_or_throw();
  return parse_tokenizer(read_file(own).take_or_throw(), own).take_or_throw();
}

std::optional<ForeignModel> open(const std::string& folder) {
  std::error_code error;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(folder + "/" + name, error);
  };
  if (!has("config.json") || !(has("model.safetensors") || has("model.safetensors.index.json")))
    return std::nullopt;
  const auto source = std::make_shared<const HuggingFaceModel>(HuggingFaceModel::open(folder));
  const nn::DecoderConfig decoder = source->config().decoder;
  ForeignModel model{config_of(*source), tokenizer_of(folder),
                     [source, decoder](State& state) { source->fill(decoder, state); }};
  if (model.tokenizer->vocabulary_size() > decoder.vocabulary)
    throw DataError(fmt::format("{}: the tokenizer has {} tokens, the token table {} rows", folder,
                                model.tokenizer->vocabulary_size(), decoder.vocabulary));
  return model;
}

}  // namespace

ForeignLayout huggingface_layout(
    const std::function<nn::DecoderConfig(const Config&, int64_t tokens)>& model) {
  return {
      "huggingface",
      "config.json and model.safetensors, which transformers reads as\n"
      "AutoModelForCausalLM.from_pretrained(FOLDER): a gpt as GPT-2, a llama as Llama or Qwen2.\n"
      "The tokenizer goes beside them: a byte-level BPE as tokenizer.json, which transformers\n"
      "reads too, others as fullbore_tokenizer.json. The way back, to go on from such a folder, "
      "is\n"
      "`fullbore train CONFIG model.initialize_from=FOLDER`.\n",
      [model](const TrainedModel& trained, const std::string& folder) {
        write(trained, model(trained.config, trained.tokenizer->vocabulary_size()), folder);
      },
      [model](const Config& config, const Tokenizer& tokenizer) {
        return read(config.model.initialize_from, model(config, tokenizer.vocabulary_size()));
      },
      open};
}

}  // namespace fullbore

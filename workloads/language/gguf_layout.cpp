#include "workloads/language/gguf_layout.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "fullbore/text/gguf_model.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/weight_source.h"
#include "workloads/language/huggingface_check.h"

namespace fullbore {
namespace {

using Sizes = std::function<nn::DecoderConfig(const Config&, int64_t tokens)>;

InitialWeights read(const std::string& path, const nn::DecoderConfig& model) {
  const auto source = std::make_shared<const GgufModel>(GgufModel::open(path));
  check_huggingface(source->config(), path, model);
  InitialWeights weights;
  std::vector<std::string> renamed;
  for (const GgufName& name : source->names(model))
    renamed.push_back(fmt::format("{} -> {}", name.theirs, name.ours));
  weights.lines = {fmt::format("weights  {} ({} in GGUF): {} tensors taken, all renamed", path,
                               source->config().family, renamed.size())};
  for (std::string& line : listed_lines("renamed", renamed))
    weights.lines.push_back(std::move(line));
  weights.fill = [source, model](State& state) {
    source->fill(model, state, {"; set model.bias=true", "; set model.tie_head=false"});
  };
  return weights;
}

ForeignLayout layout(const Sizes& model, const char* name, std::string about, GgufType matrices) {
  return {name, std::move(about),
          [model, matrices](const TrainedModel& trained, const std::string& path) {
            const nn::DecoderConfig sizes =
                model(trained.config, trained.tokenizer->vocabulary_size());
            const HuggingFaceConfig config{
                .family = huggingface_family(sizes), .decoder = sizes, .end_tokens = {}};
            export_gguf_model(path, config, *trained.tokenizer, matrices, trained.state);
          },
          [model](const Config& config, const Tokenizer& tokenizer) {
            return read(config.model.initialize_from, model(config, tokenizer.vocabulary_size()));
          }};
}

}  // namespace

std::vector<ForeignLayout> gguf_layouts(const Sizes& model) {
  return {layout(model, "gguf",
                 "a file for llama.cpp, matrices in F16. The tokenizer goes with it, if it is a\n"
                 "byte-level BPE. The way back is model.initialize_from=FILE.gguf.\n",
                 GgufType::f16),
          layout(model, "gguf-q8_0",
                 "the same with matrices in 8 bits and a scale for every 32 values.\n",
                 GgufType::q8_0)};
}

}  // namespace fullbore

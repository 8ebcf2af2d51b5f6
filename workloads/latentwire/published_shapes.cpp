#include "workloads/latentwire/published_shapes.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/data/byte_characters.h"

namespace fullbore::latentwire {
namespace {

using nn::DecoderConfig;

struct Shape {
  const char* name;
  const char* family;
  DecoderConfig decoder;
  std::vector<const char*> special_tokens;
  const char* beginning;  ///< of these; nullptr: a text begins with none
};

// config.json of HuggingFaceTB/SmolLM2-135M-Instruct, meta-llama/Llama-3.1-8B-Instruct and Qwen/Qwen2.5-7B-Instruct.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"smollm2-135m",
       "llama",
       {.vocabulary = 49152,
        .layers = 30,
        .heads = 9,
        .width = 576,
        .hidden = 1536,
        .context = 8192,
        .tie_head = true,
        .epsilon = 1e-5,
        .groups = 3,
        .theta = 100000},
       {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<file_sep>"},
       nullptr},
      {"llama-3.1-8b",
       "llama",
       {.vocabulary = 128256,
        .layers = 32,
        .heads = 32,
        .width = 4096,
        .hidden = 14336,
        .context = 131072,
        .tie_head = false,
        .epsilon = 1e-5,
        .groups = 8,
        .theta = 500000,
        .scaling = {.kind = nn::RotaryScaling::Kind::llama3,
                    .factor = 8,
                    .low = 1,
                    .high = 4,
                    .original = 8192}},
       {"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
        "<|eot_id|>", "<|eom_id|>"},
       "<|begin_of_text|>"},
      {"qwen2.5-7b",
       "qwen2",
       {.vocabulary = 152064,
        .layers = 28,
        .heads = 28,
        .width = 3584,
        .hidden = 18944,
        .context = 32768,
        .tie_head = false,
        .epsilon = 1e-6,
        .groups = 4,
        .theta = 1e6,
        .attention_bias = true},
       {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>"},
       nullptr}};
  return all;
}

std::shared_ptr<const Tokenizer> byte_tokens(const Shape& shape) {
  BpeVocabulary vocabulary;
  for (const char byte : bytes_in_character_order()) vocabulary.tokens.emplace_back(1, byte);
  for (const char* const text : shape.special_tokens) {
    const auto id = static_cast<int32_t>(vocabulary.tokens.size());
    if (shape.beginning != nullptr && std::string_view(text) == shape.beginning)
      vocabulary.settings.beginning = id;
    vocabulary.tokens.emplace_back(text);
    vocabulary.special_tokens.push_back({text, id});
  }
  return BpeTokenizer::create(std::move(vocabulary)).take_or_throw();
}

}  // namespace

std::vector<std::string> published_shapes() {
  std::vector<std::string> names;
  for (const Shape& each : shapes()) names.emplace_back(each.name);
  return names;
}

PublishedShape published_shape(std::string_view name) {
  for (const Shape& each : shapes())
    if (each.name == name) return {{each.family, each.decoder, {}}, byte_tokens(each)};
  throw UsageError(fmt::format("there is no shape '{}'.{}", name,
                               did_you_mean(std::string(name), published_shapes())));
}

}  // namespace fullbore::latentwire

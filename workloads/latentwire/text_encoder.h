#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/tokenizer.h"
#include "fullbore/nn/bert_encoder.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "fullbore/train/frozen_weights.h"

namespace fullbore::latentwire {

/// A frozen encoder that others trained on text, whose states the wire is made of (wire.encoder=tokens, sentence). Its
/// parameters are State of role `frozen` under "text_encoder".
struct TextEncoder {
  std::string folder;  ///< of transformers; empty: its weights are those of the State at hand
  nn::BertConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  DType storage = DType::f32;  ///< of its weights

  static constexpr const char* kScope = "text_encoder";
  /// Tokens of a text between [CLS] and [SEP], at most `most` of all; what is behind them is left out. DataError: what is
  /// not UTF-8.
  std::vector<int32_t> ids(const std::string& text, int64_t most) const;
};

/// In wire.text_encoder in place of a folder: the sizes of MiniLM in six layers, with random weights and a token for each
/// character of ASCII.
inline constexpr std::string_view kRandomTextEncoder = "random:minilm-l6";

/// That of wire.text_encoder; null where bytes are read. UsageError: there is none; DataError: as HuggingFaceBert::open().
std::shared_ptr<const TextEncoder> open_text_encoder(const Config& config);
/// What a checkpoint keeps of it, and the same again: JSON within receivers_json().
std::string text_encoder_json(const TextEncoder& encoder);
/// Of a checkpoint whose receivers_json() that is; null where its run read bytes.
std::shared_ptr<const TextEncoder> recorded_text_encoder(const std::string& receivers,
                                                         const Config& config);

/// Of a folder with one dtype throughout, which is mapped: the parameter's name there, by its name here.
void add_in_place(const TextEncoder& encoder, std::shared_ptr<FrozenWeights>& weights);
/// Fills the frozen State from its folder, but for what is lent to it.
void fill_text_encoder(const TextEncoder& encoder, State& state);

/// What an encoder reads of a text: its bytes, or an encoder's tokens.
std::vector<int32_t> prompt_units(const TextEncoder* encoder, const std::string& text,
                                  int64_t most);

}  // namespace fullbore::latentwire

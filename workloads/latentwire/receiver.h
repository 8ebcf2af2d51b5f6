#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/chat_template.h"
#include "fullbore/data/tokenizer.h"
#include "fullbore/nn/decoder_model.h"
#include "fullbore/train/config.h"
#include "workloads/latentwire/answer_pass.h"
#include "workloads/latentwire/text_encoder.h"

namespace fullbore::latentwire {

/// A frozen language model that reads prompts as vectors. Its parameters are State of role `frozen` under
/// "receivers.NAME", beside them the statistics of its token table.
struct Receiver {
  std::string name;
  std::string folder;  ///< the run that it is of; empty: its weights are those of the State at hand
  std::string kind;    ///< as ReaderModel has it, or "huggingface"
  std::string config_json = {};  ///< of huggingface: what its config.json says
  DType storage = DType::f32;    ///< of its weights
  nn::DecoderConfig decoder;
  std::shared_ptr<const Tokenizer> tokenizer;
  int32_t begin = -1;          ///< BOS
  std::string terminator;      ///< text that ends an answer, where there is no terminator_id
  int32_t terminator_id = -1;  ///< token that ends it
  // set_rows() decides the rest, of the configuration.
  std::string anchor = {};               ///< text before it, special tokens as they are spelled
  std::vector<int32_t> anchor_ids = {};  ///< its tokens
  std::vector<ChatPiece> anchor_pieces = {};
  bool anchor_is_header = false;  ///< of the assistant's turn, of the tokenizer's family
  std::optional<ChatFamily> turns =
      {};                   ///< prompts are read in the user's turn; none: as plain text
  std::string system = {};  ///< and this in the system's
  RowLayout layout = {};    ///< of rows with a prefix

  std::string scope() const { return "receivers." + name; }
  std::vector<int32_t> ids(const std::string& text) const;  ///< DataError: what is not UTF-8
  /// What the receiver reads as text, up to the answer: BOS, source and anchor; or, with turns, the system's and the user's
  /// with the header of the assistant's, and then the anchor, if that is not this header.
  std::vector<int32_t> prompt_ids(const std::string& source) const;
  /// The same around tokens of a source.
  std::vector<int32_t> prompt_of(std::span<const int32_t> source) const;
  /// Tokens of an answer behind the anchor, with its terminator, joined as the tokenizer joins anchor and answer
  /// (data/answer_tokens.h). DataError, which names `row`, if the tokens of the anchor are not those of the whole text's
  /// beginning.
  std::vector<int32_t> answer_ids(const std::string& answer, const std::string& row) const;
  /// Is the answer at its end?
  bool ends(std::span<const int32_t> ids) const;
  int64_t terminator_tokens() const;
  /// What was answered, up to the terminator, without white space at both ends.
  std::string answer_text(std::span<const int32_t> ids) const;
};

inline constexpr const char* kHuggingFace = "huggingface";  ///< Receiver::kind

/// Is a receiver's folder a GGUF file? Its kind is kHuggingFace, as of the same model in a folder; its weights are copied, for
/// they lie there in blocks or in another order of rows.
inline bool is_gguf(std::string_view folder) { return folder.ends_with(".gguf"); }

/// In receivers.folders in place of a run: NAME=random:KIND is a model with random weights, for plans and for measuring steps: bpe,
/// bytes, or one of published_shapes().
inline constexpr std::string_view kRandomReceiver = "random:";

/// Those of receivers.folders: runs of model.name=latentwire_reader, or folders of Hugging Face's transformers with
/// config.json, tokenizer.json and model.safetensors (GPT-2, Llama, Qwen2). UsageError names one that is missing and the command that makes it.
std::vector<Receiver> open_receivers(const Config& config);
/// Tells a receiver's weights from all others: hashes of the files that they come from, or of random ones the seed.
/// DataError.
std::string weights_identity(const Receiver& receiver, const Config& config);

/// What a checkpoint keeps of them, and of the encoder of text that prompts are read by, if there is one; and the same again;
/// no folder is opened. DataError.
std::string receivers_json(const std::vector<Receiver>& receivers,
                           const TextEncoder* encoder = nullptr);
std::vector<Receiver> recorded_receivers(const std::string& json, const Config& config);

}  // namespace fullbore::latentwire

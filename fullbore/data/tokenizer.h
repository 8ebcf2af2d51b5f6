#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore {

/// A token that stands for a text of its own, never made from other text: "<|endoftext|>".
struct SpecialToken {
  std::string text;
  int32_t id = 0;
  bool strips_left = false;   ///< takes the white space before it along
  bool strips_right = false;  ///< and that behind it
  bool normalized = false;    ///< is looked for in the normal form of a text
  bool is_control = true;     ///< stands for no text that a reader is to see
  bool operator==(const SpecialToken&) const = default;
};

/// Whether the texts of special tokens in a text become these tokens, or are text like any other.
enum class SpecialTokens { kRecognised, kAsText };

/// Text to numbers and back. Immutable; all methods may be called from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// What it is, for people: "characters", "bytes", "byte-level BPE".
  virtual std::string kind() const = 0;
  virtual int64_t vocabulary_size() const = 0;

  /// Appends the tokens of `text`, which must be well-formed UTF-8; special tokens are text. Returns
  /// the bytes taken: all, or up to the first character that the vocabulary lacks.
  virtual size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const = 0;
  /// The bytes of the token `id`, in [0, vocabulary_size()).
  virtual void append_bytes(int32_t id, std::string& bytes) const = 0;
  /// The largest position where `text` may be cut in two so that the tokens of the halves are the
  /// tokens of the whole, whatever follows; 0 if there is none. Cuts no character.
  virtual size_t last_cut(std::string_view text) const { return text.size(); }

  virtual const std::vector<SpecialToken>& special_tokens() const;
  /// The special token that follows each document of several, or -1.
  int32_t end_of_document() const;
  /// The special token that the tokenizer's own post-processor puts before a text, or -1. encode() does not.
  virtual int32_t beginning_of_text() const { return -1; }
  /// The special token of this text, or -1.
  int32_t special_token(std::string_view text) const;

  /// Failure names the first character outside the vocabulary and its offset in characters, or what
  /// is not UTF-8.
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      SpecialTokens special = SpecialTokens::kRecognised) const;
  /// Bytes, which are UTF-8 where the tokens hold whole characters. Failure names the first id
  /// outside [0, vocabulary_size()).
  Result<std::string> decode(std::span<const int32_t> ids) const;

  /// All of it as JSON, from which parse_tokenizer() makes the same.
  virtual std::string to_json() const = 0;
  uint64_t hash() const;  ///< of to_json()

 protected:
  /// append_tokens() with special tokens recognised. Returns the bytes taken, likewise.
  virtual size_t append_recognised(std::string_view text, std::vector<int32_t>& ids) const;
};

/// Any tokenizer from its JSON: one of ours, or a Hugging Face tokenizer.json of GPT-2's or BERT's kind.
/// `source` is how messages name where it came from: a path.
Result<std::shared_ptr<const Tokenizer>> parse_tokenizer(std::string_view json,
                                                         const std::string& source);
/// From a .json file, a vocab.txt of BERT (uncased), or a folder that holds tokenizer.json, vocab.json and merges.txt, or
/// vocab.txt.
Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const std::string& path);
Status save_tokenizer(const Tokenizer& tokenizer, const std::string& path);

}  // namespace fullbore

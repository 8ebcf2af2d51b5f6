#pragma once
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// One token per byte, its value: no text is outside the vocabulary of 256.
class ByteTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.byte_tokenizer";

  std::string kind() const override { return "bytes"; }
  int64_t vocabulary_size() const override { return 256; }
  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_bytes(int32_t id, std::string& bytes) const override;

  /// JSON: {"format": "fullbore.byte_tokenizer", "version": 1}.
  std::string to_json() const override;
  static Result<ByteTokenizer> from_json(std::string_view json, const std::string& source);
};

}  // namespace fullbore

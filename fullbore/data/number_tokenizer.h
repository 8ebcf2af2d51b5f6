#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// Tokens that stand for no text but themselves, written as decimal numbers between white space: the
/// vocabulary of made-up tasks. "12 21 4" is three tokens.
class NumberTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.number_tokenizer";
  static constexpr int64_t kMostNumbers = int64_t{1} << 24;

  /// Numbers 0 to numbers - 1, numbers in [1, kMostNumbers].
  explicit NumberTokenizer(int64_t numbers) : numbers_(numbers) {}

  std::string kind() const override { return "numbers"; }
  int64_t vocabulary_size() const override { return numbers_; }
  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_bytes(int32_t id, std::string& bytes) const override;
  size_t last_cut(std::string_view text) const override;

  /// JSON: {"format": "fullbore.number_tokenizer", "numbers": 256, "version": 1}.
  std::string to_json() const override;
  static Result<NumberTokenizer> from_json(std::string_view json, const std::string& source);

 private:
  int64_t numbers_;
};

}  // namespace fullbore

#pragma once
#include <string>

#include "fullbore/base/philox.h"
#include "workloads/long_context/context_reader.h"

namespace fullbore::long_context {

/// What a model that remembers everything would write behind questions about needles: what proves that
/// a grid can be solved from its texts alone. It looks at the text as a reader does, not at the keys.
/// `tokenizer` must outlive it and have a token of its own for each character.
class NeedleOracle : public ContextReader {
 public:
  explicit NeedleOracle(const Tokenizer& tokenizer);
  int64_t context() const override { return 0; }
  void begin(int64_t room) override;
  void read(std::span<const int32_t> tokens) override;
  std::span<const float> logits() override;

 private:
  const Tokenizer& tokenizer_;
  std::string text_;
  std::vector<float> logits_;
};

/// What a needle oracle answers: `text` ends in a question, and perhaps the begin of an answer, which is
/// not part of the result. Empty where there is no question, or nothing is known.
std::string needle_answer(std::string_view text);

/// Capital letters at random: chance is 1 in 26^5 for a value.
class LetterGuesser : public ContextReader {
 public:
  LetterGuesser(const Tokenizer& tokenizer, uint64_t seed);
  int64_t context() const override { return 0; }
  void begin(int64_t) override {}
  void read(std::span<const int32_t>) override {}
  std::span<const float> logits() override;

 private:
  PhiloxStream draws_;
  std::vector<int32_t> letters_;
  std::vector<float> logits_;
};

}  // namespace fullbore::long_context

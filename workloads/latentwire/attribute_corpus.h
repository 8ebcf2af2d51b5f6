#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fullbore::latentwire {

/// A question about one of three to six attributes that its context tells.
struct AttributeRow {
  struct Attribute {
    std::string field;
    std::string value;
  };
  std::vector<Attribute> attributes;  ///< in the order of the context
  size_t asked = 0;                   ///< index of the attribute that the question is about

  const std::string& answer() const { return attributes[asked].value; }
  std::string context() const;   ///< "Context: The city is Norgate. The day is Sunday.\n"
  std::string question() const;  ///< "Question: What is the day?\n"
  std::string source() const { return context() + question(); }
};

inline constexpr uint64_t kAttributeTrainingKey = 123;
inline constexpr uint64_t kAttributeTestKey = 999;
inline constexpr uint64_t kAttributeVocabularyKey = 1;

/// Row `index` of the corpus `key`: any program makes the same one. SplitMix64 from key * 0x100000001B3 + index, one
/// output discarded, and below(n) = (the upper 32 bits of a draw times n) >> 32: 3 to 6 fields, distinct, then their
/// values, then which is asked.
AttributeRow attribute_row(uint64_t key, uint64_t index);

/// Every attribute that there is, field by field.
std::vector<std::vector<AttributeRow::Attribute>> all_attributes();

/// What the small language models are trained on: the context, and `pairs` questions with their answers, the first of
/// them the row's, the others drawn by SplitMix64 from 7919 * key + index.
std::string attribute_document(uint64_t key, uint64_t index, int64_t pairs = 3);

/// Context "Context: ", question "Question: ", answer "Answer:", whose text begins with a space and ends with a newline.
inline constexpr const char* kAnswerAnchor = "Answer:";

}  // namespace fullbore::latentwire

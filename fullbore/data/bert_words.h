#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace fullbore {

/// How BERT's tokenizers see a text before it is divided into word pieces.
struct BertNormalization {
  bool lowercase = true;
  bool strip_accents = true;  ///< canonical decomposition without nonspacing marks
};

/// Calls visit(word) for each word of the text, which must be UTF-8: characters between white space, normalised;
/// each mark of punctuation and each ideograph is a word. Controls are left out.
/// Marks of one letter are not put in canonical order, which they would be seen by only without strip_accents.
/// Source: Devlin et al. 2019, arXiv:1810.04805, and the tokenization published with it.
void for_each_bert_word(std::string_view text, const BertNormalization& normalization,
                        const std::function<void(std::string_view word)>& visit);

}  // namespace fullbore

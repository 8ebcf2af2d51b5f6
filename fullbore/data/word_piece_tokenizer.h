#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fullbore/data/bert_words.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// A vocabulary of word pieces, and what text is made into before it is divided.
struct WordPieceVocabulary {
  std::vector<std::string> pieces;  ///< by id; "##ing" goes on with a word
  BertNormalization normalization;
  std::string unknown = "[UNK]";  ///< the piece of a word that cannot be divided; one of `pieces`
};

/// Divides words into the longest pieces there are, from their beginning on. The ids are those of the Python package
/// `tokenizers` without its [CLS] and [SEP].
/// Source: Wu et al. 2016, arXiv:1609.08144, section 4.1; Devlin et al. 2019, arXiv:1810.04805.
class WordPieceTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.word_piece_tokenizer";
  static constexpr size_t kMostWordCharacters =
      100;  ///< of a word that is divided; a longer one is unknown

  /// Failure: a piece occurs twice, is empty or no UTF-8, or the unknown one is missing.
  static Result<WordPieceTokenizer> create(WordPieceVocabulary vocabulary);

  std::string kind() const override { return "WordPiece"; }
  int64_t vocabulary_size() const override { return std::ssize(vocabulary_.pieces); }
  /// All text has tokens.
  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  /// A space and a word, or how one goes on. What the text had between words is not kept.
  void append_bytes(int32_t id, std::string& bytes) const override;
  size_t last_cut(std::string_view text) const override;
  /// Pieces like "[CLS]", of capitals in brackets.
  const std::vector<SpecialToken>& special_tokens() const override { return special_; }
  /// -1 if there is no such piece.
  int32_t id(std::string_view piece) const;

  /// JSON: {"format": "fullbore.word_piece_tokenizer", "version": 1, "lowercase": true, "strip_accents": true,
  /// "unknown": "[UNK]", "pieces": [...]}.
  std::string to_json() const override;
  static Result<WordPieceTokenizer> from_json(std::string_view json, const std::string& source);

 private:
  explicit WordPieceTokenizer(WordPieceVocabulary vocabulary);
  void append_word(std::string_view word, std::vector<int32_t>& ids) const;

  /// Text can be looked up without a copy.
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Ids = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

  WordPieceVocabulary vocabulary_;
  Ids begins_;     ///< pieces that begin a word
  Ids continues_;  ///< the others, without "##"
  int32_t unknown_ = 0;
  std::vector<SpecialToken> special_;
};

/// A Hugging Face tokenizer.json whose model is WordPiece, with BERT's normalizer and pre-tokenizer. Anything else that
/// would change the tokens is refused by name; post-processors, which add [CLS] and [SEP], and decoders are not applied.
Result<WordPieceTokenizer> parse_word_piece_json(std::string_view json, const std::string& source);
/// Is that a tokenizer.json whose model is WordPiece?
bool is_word_piece_json(std::string_view json);

/// vocab.txt as it was published with BERT: a piece a line, its number the id. `source` names it in messages.
Result<WordPieceTokenizer> parse_word_piece_vocabulary(std::string_view text,
                                                       const BertNormalization& normalization,
                                                       const std::string& source);

}  // namespace fullbore

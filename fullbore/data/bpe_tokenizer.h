#pragma once
#include <array>
#include <memory>
#include <mutex>

#include "fullbore/data/added_tokens.h"
#include "fullbore/data/bpe_merges.h"
#include "fullbore/data/bpe_word_cache.h"
#include "fullbore/data/pre_tokenizer.h"
#include "fullbore/data/token_table.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// What differs between the families of models.
struct BpeSettings {
  WordSplit split = WordSplit::kGpt2;
  bool composes = false;       ///< text is brought into normalization form C first
  bool ignore_merges = false;  ///< a word that is a token is this token, whatever its merges say
  int32_t beginning = -1;  ///< the special token that the post-processor puts before a text, or -1
  bool operator==(const BpeSettings&) const = default;
};

/// What a byte-level BPE consists of.
struct BpeVocabulary {
  std::vector<std::string> tokens;  ///< bytes by id; for special tokens their text
  std::vector<BpeMerge> merges;     ///< best first
  std::vector<SpecialToken> special_tokens;
  BpeSettings settings;
};

/// Byte-pair encoding of bytes inside the words of pre_tokenizer.h: no text is outside the
/// vocabulary. Source: Radford et al. 2019, "Language models are unsupervised multitask learners",
/// section 2.2.
class BpeTokenizer : public Tokenizer {
 public:
  /// Failure: a token or a special token stands twice, a byte has no token, a merge does not make
  /// the token it names or stands twice, an id is out of range, the beginning is no special token.
  static Result<std::shared_ptr<const BpeTokenizer>> create(BpeVocabulary vocabulary);

  std::string kind() const override { return "byte-level BPE"; }
  int64_t vocabulary_size() const override {
    return static_cast<int64_t>(vocabulary_.tokens.size());
  }
  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  void append_bytes(int32_t id, std::string& bytes) const override;
  size_t last_cut(std::string_view text) const override;
  const std::vector<SpecialToken>& special_tokens() const override {
    return vocabulary_.special_tokens;
  }
  int32_t beginning_of_text() const override { return vocabulary_.settings.beginning; }
  /// A Hugging Face tokenizer.json.
  std::string to_json() const override;

  const BpeVocabulary& vocabulary() const { return vocabulary_; }

 protected:
  size_t append_recognised(std::string_view text, std::vector<int32_t>& ids) const override;

 private:
  BpeTokenizer(BpeVocabulary vocabulary, std::span<const int32_t> byte_tokens);

  /// What one call of append_tokens() works with; handed from call to call so that words stay known.
  struct Worker {
    BpeWordCache cache;
    BpeMerges::Scratch scratch;
    std::vector<int32_t> ids;
    std::string composed;
  };
  void append_unknown_word(std::string_view word, BpeWordCache::Slot* place,
                           BpeWordCache::Slot packed, Worker& worker, int32_t*& out) const;
  std::unique_ptr<Worker> borrow() const;
  void give_back(std::unique_ptr<Worker> worker) const;

  BpeVocabulary vocabulary_;
  BpeMerges merges_;
  AddedTokens added_;
  // With ignore_merges: the tokens that a word may be.
  TokenTable words_;
  std::vector<bool> is_special_;  ///< by id
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace fullbore

#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/bpe_merges.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore::latentwire {

/// Tokens of the two small language models: 0 padding, 1 the beginning, 2 the end of a document, 3 to 258 the bytes, and
/// from 259 on one for each merge. Without merges it is a byte tokenizer. Words, within which merges are made, are an
/// optional space and letters, an optional space and other characters, or white space; letters are those of ASCII.
class CorpusTokenizer : public Tokenizer {
 public:
  static constexpr const char* kFormat = "fullbore.latentwire_tokenizer";
  static constexpr int32_t kPadding = 0, kBegin = 1, kEnd = 2, kFirstByte = 3;
  static constexpr int32_t kFirstMerge = kFirstByte + 256;

  /// `merges`: best first; the merge at place i makes token kFirstMerge + i of tokens below it.
  explicit CorpusTokenizer(std::vector<BpeMerge> merges = {});

  std::string kind() const override { return merges_.empty() ? "bytes" : "byte-level BPE"; }
  int64_t vocabulary_size() const override {
    return kFirstMerge + static_cast<int64_t>(merges_.size());
  }
  size_t append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  /// Nothing for padding, beginning and end.
  void append_bytes(int32_t id, std::string& bytes) const override {
    bytes += bytes_[static_cast<size_t>(id)];
  }
  size_t last_cut(std::string_view text) const override;

  const std::vector<BpeMerge>& merges() const { return merges_; }
  /// JSON: {"format": "fullbore.latentwire_tokenizer", "merges": [[left, right], ...], "version": 1}.
  std::string to_json() const override;
  /// `source` is how messages name where the text came from: a path.
  static Result<CorpusTokenizer> from_json(std::string_view json, const std::string& source);

 private:
  std::vector<BpeMerge> merges_;
  std::shared_ptr<const BpeMerges> words_;
  std::vector<std::string> bytes_;  ///< by id
};

/// Where the word that begins at `begin` of a text ends.
size_t corpus_word_end(std::string_view text, size_t begin);

/// Learns `count` merges: again and again the most frequent pair of neighbouring tokens within words becomes a token; of
/// equally frequent ones that with the smaller ids.
std::vector<BpeMerge> train_corpus_merges(const std::vector<std::string>& documents, int64_t count);

/// The tokenizer of the small byte-pair model: 253 merges learnt from the documents 0 to 499 of key 1 with four pairs each.
CorpusTokenizer corpus_bpe();

}  // namespace fullbore::latentwire

#include "fullbore/data/token_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace fullbore {
namespace {

/// The part that holds `index`: parts without anything in them are passed over.
size_t part_of(const std::vector<int64_t>& begins, int64_t index) {
  return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), index) -
                             begins.begin() - 1);
}

}  // namespace

TokenCorpus::TokenCorpus(std::vector<TokenShard> shards)
    : shards_(std::move(shards)), token_begins_{0}, document_begins_{0}, file_begins_{0} {
  for (const TokenShard& shard : shards_) {
    token_begins_.push_back(token_begins_.back() + shard.size());
    document_begins_.push_back(document_begins_.back() +
                               static_cast<int64_t>(shard.document_ends().size()));
    file_begins_.push_back(file_begins_.back() + static_cast<int64_t>(shard.file_ends().size()));
  }
}

Result<TokenCorpus> TokenCorpus::create(std::vector<TokenShard> shards) {
  if (shards.empty()) return Failure{"no token shard is named"};
  std::set<std::string> paths;
  for (const TokenShard& shard : shards) {
    if (shard.key().tokenizer_hash != shards.front().key().tokenizer_hash)
      return Failure{fmt::format("{} and {} were made by different tokenizers",
                                 shards.front().path(), shard.path())};
    if (!paths.insert(shard.path()).second)
      return Failure{fmt::format("{} is named twice", shard.path())};
  }
  TokenCorpus corpus(std::move(shards));
  if (corpus.size() == 0)
    return Failure{fmt::format("{} holds no tokens", corpus.shards_.front().path())};
  return corpus;
}

Result<TokenCorpus> TokenCorpus::open(const std::vector<std::string>& paths) {
  std::vector<TokenShard> shards;
  for (const std::string& path : paths) {
    Result<TokenShard> shard = TokenShard::open(path);
    if (!shard.ok()) return Failure{shard.error()};
    shards.push_back(std::move(shard).value());
  }
  return create(std::move(shards));
}

uint64_t TokenCorpus::text_bytes() const {
  uint64_t sum = 0;
  for (const TokenShard& shard : shards_) sum += shard.text_bytes();
  return sum;
}

Result<std::shared_ptr<const Tokenizer>> TokenCorpus::tokenizer() const {
  return parse_tokenizer(shards_.front().tokenizer_json(), shards_.front().path());
}

// All shards of one text carry its hash and length.
uint64_t TokenCorpus::content_bytes() const { return shards_.front().key().content_bytes; }

uint64_t TokenCorpus::content_hash() const {
  if (shards_.size() == 1) return shards_.front().key().content_hash;
  uint64_t hash = 0;
  for (const TokenShard& shard : shards_) {
    const uint64_t parts[] = {shard.key().content_hash, static_cast<uint64_t>(shard.size())};
    hash = hash_bytes(parts, sizeof parts, hash);
  }
  return hash;
}

void TokenCorpus::copy(int64_t begin, int64_t count, int32_t* out) const {
  FB_CHECK(begin >= 0 && count >= 0 && begin <= size() - count, "tokens [{}, {}) of {}", begin,
           begin + count, size());
  while (count > 0) {
    const size_t part = part_of(token_begins_, begin);
    const int64_t here = std::min(count, token_begins_[part + 1] - begin);
    shards_[part].copy(begin - token_begins_[part], here, out);
    begin += here;
    count -= here;
    out += here;
  }
}

TokenSpan TokenCorpus::document(int64_t index) const {
  FB_CHECK(index >= 0 && index < documents(), "document {} of {}", index, documents());
  const size_t part = part_of(document_begins_, index);
  const auto ends = shards_[part].document_ends();
  const auto local = static_cast<size_t>(index - document_begins_[part]);
  const int64_t base = token_begins_[part];
  return {base + (local == 0 ? 0 : static_cast<int64_t>(ends[local - 1])),
          base + static_cast<int64_t>(ends[local])};
}

int64_t TokenCorpus::document_of(int64_t token) const {
  FB_CHECK(token >= 0 && token < size(), "token {} of {}", token, size());
  const size_t part = part_of(token_begins_, token);
  const auto ends = shards_[part].document_ends();
  const auto local = static_cast<uint64_t>(token - token_begins_[part]);
  return document_begins_[part] +
         (std::upper_bound(ends.begin(), ends.end(), local) - ends.begin());
}

int64_t TokenCorpus::file_begin(int64_t index) const {
  FB_CHECK(index >= 0 && index <= files(), "file {} of {}", index, files());
  if (index == files()) return documents();
  const size_t part = part_of(file_begins_, index);
  const auto local = static_cast<size_t>(index - file_begins_[part]);
  const auto ends = shards_[part].file_ends();
  return document_begins_[part] + (local == 0 ? 0 : static_cast<int64_t>(ends[local - 1]));
}

}  // namespace fullbore

#include "fullbore/text/data_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fullbore/app/json_text.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/text.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr size_t kMostFrequent = 12;

/// A token's text in quotes; bytes that are no characters by their numbers.
std::string shown(const Tokenizer& tokenizer, int32_t id) {
  std::string bytes;
  tokenizer.append_bytes(id, bytes);
  if (decode_utf8(bytes, [](char32_t) {}) == bytes.size()) return nlohmann::json(bytes).dump();
  std::string text;
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::vector<int32_t> ids_by_count(const TokenStatistics& statistics) {
  std::vector<int32_t> ids(statistics.counts.size());
  std::iota(ids.begin(), ids.end(), 0);
  const size_t shown_ids = std::min(kMostFrequent, ids.size());
  const auto count = [&](int32_t id) { return statistics.counts[static_cast<size_t>(id)]; };
  std::partial_sort(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown_ids), ids.end(),
      [&](int32_t a, int32_t b) { return count(a) != count(b) ? count(a) > count(b) : a < b; });
  ids.resize(shown_ids);
  while (!ids.empty() && count(ids.back()) == 0) ids.pop_back();
  return ids;
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

int64_t quantile(const std::vector<int64_t>& ascending, double q) {
  return ascending[static_cast<size_t>(q * static_cast<double>(ascending.size() - 1))];
}

double bytes_per_token(const TokenCorpus& corpus) {
  return static_cast<double>(corpus.text_bytes()) / static_cast<double>(corpus.size());
}

nlohmann::ordered_json shard_json(const TokenShard& shard, const Tokenizer& tokenizer) {
  return {{"path", shard.path()},
          {"tokens", shard.size()},
          {"token_bytes", shard.token_bytes()},
          {"documents", shard.document_ends().size()},
          {"files", shard.file_ends().size()},
          {"text_bytes", shard.text_bytes()},
          {"vocabulary_size", shard.vocabulary_size()},
          {"tokenizer", tokenizer.kind()},
          {"tokenizer_hash", hash_hex(shard.key().tokenizer_hash)},
          {"end_of_document", shard.end_of_document()},
          {"content_bytes", shard.key().content_bytes},
          {"content_hash", hash_hex(shard.key().content_hash)}};
}

}  // namespace

std::string shards_report(const TokenCorpus& corpus, const Tokenizer& tokenizer) {
  std::string text;
  for (const TokenShard& shard : corpus.shards()) {
    const int32_t end = shard.end_of_document();
    text += fmt::format("{}\n", printable_name(shard.path()));
    text += fmt::format("  tokens      {}, {} bytes each\n", shard.size(), shard.token_bytes());
    text += fmt::format("  content     {} in {}; end of document: {}\n",
                        counted(static_cast<int64_t>(shard.document_ends().size()), "document"),
                        counted(static_cast<int64_t>(shard.file_ends().size()), "file"),
                        end < 0 ? "none" : fmt::format("{} {}", end, shown(tokenizer, end)));
    text += fmt::format("  tokenizer   {}, {} tokens, hash {}\n", tokenizer.kind(),
                        shard.vocabulary_size(), hash_hex(shard.key().tokenizer_hash));
    text += fmt::format("  made from   {} of sources, xxHash64 {}; {} of text\n",
                        bytes_text(static_cast<double>(shard.key().content_bytes)),
                        hash_hex(shard.key().content_hash),
                        bytes_text(static_cast<double>(shard.text_bytes())));
    text += "  checksums   all hold\n";
  }
  return text;
}

std::string shards_json(const TokenCorpus& corpus, const Tokenizer& tokenizer) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TokenShard& shard : corpus.shards()) json.push_back(shard_json(shard, tokenizer));
  return json_text(json);
}

std::string document_report(const TokenCorpus& corpus, const Tokenizer& tokenizer, int64_t document,
                            int64_t tokens) {
  const TokenSpan span = corpus.document(document);
  const int64_t count = tokens > 0 ? std::min(tokens, span.size()) : span.size();
  std::vector<int32_t> ids(static_cast<size_t>(count));
  corpus.copy(span.begin, count, ids.data());
  if (tokens == 0) return tokenizer.decode(ids).take_or_throw() + "\n";
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i)
    text += fmt::format("{:>10}  {:>8}  {}\n", span.begin + static_cast<int64_t>(i), ids[i],
                        shown(tokenizer, ids[i]));
  return text;
}

TokenStatistics token_statistics(const TokenCorpus& corpus) {
  TokenStatistics statistics;
  statistics.counts.resize(static_cast<size_t>(corpus.vocabulary_size()));
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int32_t> block(kBlock);
  for (int64_t begin = 0; begin < corpus.size(); begin += kBlock) {
    const int64_t count = std::min(kBlock, corpus.size() - begin);
    corpus.copy(begin, count, block.data());
    for (int64_t i = 0; i < count; ++i)
      ++statistics.counts[static_cast<size_t>(block[static_cast<size_t>(i)])];
  }
  for (int64_t i = 0; i < corpus.documents(); ++i)
    statistics.document_lengths.push_back(corpus.document(i).size());
  std::sort(statistics.document_lengths.begin(), statistics.document_lengths.end());
  for (const uint64_t count : statistics.counts) {
    const double share = static_cast<double>(count) / static_cast<double>(corpus.size());
    if (count > 0) statistics.entropy_bits -= share * std::log2(share);
    statistics.unused += count == 0 ? 1 : 0;
  }
  return statistics;
}

std::string statistics_report(const TextData& text, const TokenStatistics& statistics) {
  const TokenCorpus& corpus = *text.tokens;
  const std::vector<int64_t>& lengths = statistics.document_lengths;
  std::string report =
      fmt::format("text        {}: {} of text in {}, {}\n", printable_name(text.path),
                  bytes_text(static_cast<double>(corpus.text_bytes())),
                  counted(corpus.documents(), "document"), counted(corpus.files(), "file"));
  report += fmt::format("tokenizer   {}, {} tokens, of which {} never occur\n",
                        text.tokenizer->kind(), corpus.vocabulary_size(), statistics.unused);
  report +=
      fmt::format("tokens      {}; {:.3f} bytes each\n", corpus.size(), bytes_per_token(corpus));
  report +=
      fmt::format("lengths     shortest {}, median {}, 90 % up to {}, longest {} tokens\n",
                  lengths.front(), quantile(lengths, 0.5), quantile(lengths, 0.9), lengths.back());
  report += fmt::format("entropy     {:.4f} bits, {:.4f} nats per single token\n",
                        statistics.entropy_bits, statistics.entropy_bits * std::log(2.0));
  report += "most frequent\n";
  for (const int32_t id : ids_by_count(statistics)) {
    const uint64_t count = statistics.counts[static_cast<size_t>(id)];
    report +=
        fmt::format("  {:>8}  {:<20} {:>12}  {:6.2f} %\n", id, shown(*text.tokenizer, id), count,
                    100.0 * static_cast<double>(count) / static_cast<double>(corpus.size()));
  }
  return report;
}

std::string statistics_json(const TextData& text, const TokenStatistics& statistics) {
  const TokenCorpus& corpus = *text.tokens;
  const std::vector<int64_t>& lengths = statistics.document_lengths;
  nlohmann::ordered_json frequent = nlohmann::ordered_json::array();
  for (const int32_t id : ids_by_count(statistics))
    frequent.push_back({{"id", id},
                        {"token", shown(*text.tokenizer, id)},
                        {"count", statistics.counts[static_cast<size_t>(id)]}});
  return json_text(nlohmann::ordered_json{{"text", text.path},
                                          {"text_bytes", corpus.text_bytes()},
                                          {"documents", corpus.documents()},
                                          {"files", corpus.files()},
                                          {"tokenizer", text.tokenizer->kind()},
                                          {"vocabulary_size", corpus.vocabulary_size()},
                                          {"unused_tokens", statistics.unused},
                                          {"tokens", corpus.size()},
                                          {"bytes_per_token", bytes_per_token(corpus)},
                                          {"document_tokens",
                                           {{"shortest", lengths.front()},
                                            {"median", quantile(lengths, 0.5)},
                                            {"percentile_90", quantile(lengths, 0.9)},
                                            {"longest", lengths.back()}}},
                                          {"entropy_bits", statistics.entropy_bits},
                                          {"most_frequent", frequent}});
}

}  // namespace fullbore

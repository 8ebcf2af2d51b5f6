#include "fullbore/data/tokenize.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "fullbore/base/threads.h"
#include "fullbore/data/document_stream.h"
#include "fullbore/data/token_shard.h"
#include "fullbore/data/unicode_classes.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

/// A part and what becomes of it.
struct Work {
  TextPart part;
  std::vector<int32_t> tokens;
  std::vector<uint64_t> document_ends;
  std::string error;

  void encode(const Tokenizer& tokenizer) {
    tokens.clear();
    document_ends.clear();
    const std::string_view text = part.text;
    size_t begin = 0;
    for (const size_t end : part.document_ends) {
      if (!encode(tokenizer, text, begin, end)) return;
      if (tokenizer.end_of_document() >= 0) tokens.push_back(tokenizer.end_of_document());
      document_ends.push_back(tokens.size());
      begin = end;
    }
    encode(tokenizer, text, begin, text.size());
  }

 private:
  bool encode(const Tokenizer& tokenizer, std::string_view text, size_t begin, size_t end) {
    const size_t taken = tokenizer.append_tokens(text.substr(begin, end - begin), tokens);
    if (begin + taken == end) return true;
    size_t bytes = 0;
    error = fmt::format("{}: line {}: character {} is not among the tokenizer's {} characters",
                        part.path, line_of(part, begin + taken),
                        character_text(character_at(text.data() + begin + taken, bytes)),
                        tokenizer.vocabulary_size());
    return false;
  }
};

/// The shards, one after the other.
class ShardSequence {
 public:
  ShardSequence(std::string path, const TokenKey& key, const Tokenizer& tokenizer,
                int64_t shard_tokens, FileSystem& files)
      : path_(std::move(path)),
        key_(key),
        tokenizer_(tokenizer),
        shard_tokens_(shard_tokens),
        files_(files) {}

  Status append(const Work& work) {
    std::span<const uint64_t> ends = work.document_ends;
    uint64_t done = 0;  // tokens of this work that are written
    std::vector<uint64_t> local;
    // The text of a divided part counts where it begins: the sum over shards is what matters.
    uint64_t text_bytes = work.part.text.size();
    while (done < work.tokens.size() || !ends.empty()) {
      if (Status s = begin_shard(); !s.ok()) return s;
      const size_t count = documents_until_full(ends, done);
      const bool full = count > 0;
      const uint64_t until = full ? ends[count - 1] : work.tokens.size();
      local.clear();
      for (size_t i = 0; i < (full ? count : ends.size()); ++i) local.push_back(ends[i] - done);
      const auto tokens = std::span(work.tokens).subspan(done, until - done);
      if (Status s = writer_->append(tokens, local, text_bytes); !s.ok()) return s;
      text_bytes = 0;
      ends = ends.subspan(local.size());
      done = until;
      if (!full) break;
      if (Status s = finish(); !s.ok()) return s;
    }
    if (work.part.ends_file && writer_.has_value()) writer_->end_file();
    return success();
  }

  /// Ends the shard that is being written, if any.
  Status finish() {
    if (!writer_.has_value()) return success();
    Status written = writer_->commit();
    writer_.reset();
    return written;
  }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  Status begin_shard() {
    if (writer_.has_value()) return success();
    std::string path = path_;
    if (shard_tokens_ > 0) {
      const std::filesystem::path whole(path_);
      path = fmt::format("{}-{:05}{}", (whole.parent_path() / whole.stem()).string(), paths_.size(),
                         whole.extension().string());
    }
    Result<TokenShardWriter> writer = TokenShardWriter::create(path, key_, tokenizer_, files_);
    if (!writer.ok()) return Failure{writer.error()};
    writer_.emplace(std::move(writer).value());
    paths_.push_back(path);
    return success();
  }

  /// How many of the documents fill this shard; 0 if all do not.
  size_t documents_until_full(std::span<const uint64_t> ends, uint64_t done) const {
    for (size_t i = 0; i < ends.size() && shard_tokens_ > 0; ++i)
      if (writer_->tokens() + static_cast<int64_t>(ends[i] - done) >= shard_tokens_) return i + 1;
    return 0;
  }

  std::string path_;
  TokenKey key_;
  const Tokenizer& tokenizer_;
  int64_t shard_tokens_;
  FileSystem& files_;
  std::optional<TokenShardWriter> writer_;
  std::vector<std::string> paths_;
};

}  // namespace

Result<std::vector<std::string>> tokenize_text(const TextSources& sources,
                                               const ContentHash& content,
                                               const Tokenizer& tokenizer, const std::string& path,
                                               const TokenizeOptions& options, FileSystem& files) {
  DocumentStream stream(sources, tokenizer);
  const TokenKey key{content.bytes(), content.hash(), tokenizer.hash()};
  ShardSequence shards(path, key, tokenizer, options.shard_tokens, files);
  ThreadPool pool(options.workers);
  std::vector<Work> works(static_cast<size_t>(2 * options.workers));
  uint64_t bytes = 0;
  for (bool more = true; more;) {
    size_t count = 0;
    while (more && count < works.size()) {
      const Result<bool> next = stream.next(works[count].part);
      if (!next.ok()) return Failure{next.error()};
      more = next.value();
      if (more) ++count;
    }
    pool.parallel_for(static_cast<int64_t>(count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) works[static_cast<size_t>(i)].encode(tokenizer);
    });
    for (size_t i = 0; i < count; ++i) {
      if (!works[i].error.empty()) return Failure{works[i].error};
      if (const Status s = shards.append(works[i]); !s.ok()) return Failure{s.error()};
      bytes += works[i].part.source_bytes;
    }
    if (options.progress && !options.progress(bytes, content.bytes())) return Failure{"stopped"};
  }
  if (!(stream.content().files == content.files))
    return Failure{fmt::format("{} changed while it was being read", sources.name)};
  if (shards.paths().empty())
    return Failure{fmt::format("{}: there is no text in any document", sources.name)};
  if (const Status s = shards.finish(); !s.ok()) return Failure{s.error()};
  return shards.paths();
}

}  // namespace fullbore

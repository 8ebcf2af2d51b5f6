#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/input_file.h"
#include "fullbore/base/result.h"
#include "fullbore/data/token_layout.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// What the tokens of a shard were made from and by.
struct TokenKey {
  uint64_t content_bytes = 0;  ///< of the sources
  uint64_t content_hash = 0;
  uint64_t tokenizer_hash = 0;
  bool operator==(const TokenKey&) const = default;
};

/// Tokens in a file, with the boundaries of documents and files and the tokenizer that made them: complete in
/// itself. Layout: token_layout.h.
///
/// Tokens are read when they are asked for (pread), not mapped: a file that is cut short or fails while it is in use
/// is then a DataError with its name and not a SIGBUS, and resident memory does not grow with the corpus. A window
/// of 1,024 tokens costs a call of about a microsecond, on the loader's threads. Boundaries, 8 bytes each, are kept
/// in memory.
class TokenShard {
 public:
  /// Checks everything: header, length, checksums, boundaries, and that every token is in the
  /// vocabulary. Failure names the path, and the bytes that are damaged.
  static Result<TokenShard> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  TokenKey key() const {
    return {header_.content_bytes, header_.content_hash, header_.tokenizer_hash};
  }
  int64_t size() const { return static_cast<int64_t>(footer_.tokens); }
  int64_t vocabulary_size() const { return static_cast<int64_t>(header_.vocabulary_size); }
  int32_t end_of_document() const { return header_.end_of_document; }
  uint64_t text_bytes() const { return footer_.text_bytes; }
  int token_bytes() const { return static_cast<int>(header_.token_bytes); }
  /// Where documents end, in tokens, and files, in documents.
  std::span<const uint64_t> document_ends() const { return document_ends_; }
  std::span<const uint64_t> file_ends() const { return file_ends_; }
  std::string_view tokenizer_json() const { return tokenizer_json_; }

  /// Tokens [begin, begin + count) to `out`. Safe from any thread. DataError if they can no longer be read, or are
  /// no tokens of the vocabulary any more.
  void copy(int64_t begin, int64_t count, int32_t* out) const;

 private:
  explicit TokenShard(InputFile file) : file_(std::move(file)) {}
  Status check();
  Status check_structure(std::vector<uint64_t>& block_hashes) const;
  Status check_blocks(std::span<const uint64_t> block_hashes);
  Status check_contents(uint64_t largest_token) const;
  Failure refuse(const std::string& reason) const;
  uint64_t padded_token_bytes() const;
  /// Of all between header and block hashes.
  uint64_t payload_bytes() const;

  InputFile file_;
  TokenHeader header_{};
  TokenFooter footer_{};
  std::vector<uint64_t> document_ends_;
  std::vector<uint64_t> file_ends_;
  std::string tokenizer_json_;
};

/// Whether the file begins as a token shard does.
bool is_token_shard(const std::string& path);

/// Writes a shard from front to back; it has its name only when it is complete and on the disk.
class TokenShardWriter {
 public:
  static Result<TokenShardWriter> create(const std::string& path, const TokenKey& key,
                                         const Tokenizer& tokenizer,
                                         FileSystem& files = system_files());

  /// `document_ends`: offsets in `tokens` where documents end.
  Status append(std::span<const int32_t> tokens, std::span<const uint64_t> document_ends,
                uint64_t text_bytes);
  void end_file();
  int64_t tokens() const { return static_cast<int64_t>(footer_.tokens); }
  uint64_t documents() const { return document_ends_.size(); }
  /// Ends the shard; the last document and file end here if they have not. Call once.
  Status commit();

 private:
  TokenShardWriter(AtomicFile file, std::string tokenizer_json);
  Status write(std::string_view bytes);

  AtomicFile file_;
  std::string tokenizer_json_;
  uint32_t token_bytes_ = 2;
  TokenFooter footer_{};
  std::vector<uint64_t> document_ends_;
  std::vector<uint64_t> file_ends_;
  std::string block_;  ///< bytes written since the last whole block
  std::vector<uint64_t> block_hashes_;
  std::vector<char> packed_;
};

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <string>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"
#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/text_file.h"

namespace fullbore {

/// What the tokens in a file were made from; a file made from anything else is not used.
struct TokenKey {
  uint64_t text_bytes = 0;
  uint64_t text_hash = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t vocabulary_size = 0;
  uint64_t tokens = 0;
};

/// A file of tokens, mapped into memory, read only. All integers little endian:
///
///   0   8  magic "FBTOKENS"          32  8  xxHash64 of the text
///   8   4  version, 1                40  8  xxHash64 of the tokenizer
///   12  4  bytes per token, 2 or 4   48  8  vocabulary size
///   16  8  number of tokens          56  8  xxHash64 of bytes 0-55
///   24  8  bytes of the text         64     tokens, zero-padded to 8 bytes
///                                    end-8  xxHash64 of tokens and padding
class TokenFile {
 public:
  /// Checks everything: header, key, length, checksums, and that every token is in the vocabulary.
  /// Failure names the path and what differs.
  static Result<TokenFile> open(const std::string& path, const TokenKey& key);
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;
  ~TokenFile();

  int64_t size() const { return size_; }
  int64_t vocabulary_size() const { return vocabulary_size_; }
  /// Tokens [begin, begin + count) to `out`. Safe from any thread.
  void copy(int64_t begin, int64_t count, int32_t* out) const;

 private:
  TokenFile(void* mapping, size_t mapped_bytes);
  Status check(const std::string& path, const TokenKey& key);

  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  const char* tokens_ = nullptr;
  int width_ = 2;  ///< bytes per token
  int64_t size_ = 0;
  int64_t vocabulary_size_ = 0;
};

struct CachedTokens {
  TokenFile tokens;
  std::string path;
  /// How the file came to be: "" when it was there already, else "made" or why it was made again.
  std::string note;
};

/// The tokens of a text, from `cache_folder` (created when missing) or made and put there. Files
/// are named by content, so that a text edited or moved never meets another's tokens; a torn,
/// altered or foreign file is made again. Streams: memory does not grow with the text.
/// Failure: the text holds a character that the tokenizer lacks (named, with its line), the text
/// changed since `summary` was taken, or the folder cannot be written.
Result<CachedTokens> cached_tokens(const std::string& text_path, const TextSummary& summary,
                                   const CharacterTokenizer& tokenizer,
                                   const std::string& cache_folder,
                                   FileSystem& files = system_files());

}  // namespace fullbore

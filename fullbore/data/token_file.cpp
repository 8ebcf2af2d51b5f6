#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/data/token_cache.h"
#include "fullbore/data/token_layout.h"

namespace fullbore {
namespace {

constexpr size_t kTrailerBytes = sizeof(uint64_t);

template <class Token>
uint64_t largest(const char* tokens, int64_t count) {
  const auto* first = reinterpret_cast<const Token*>(tokens);
  Token most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, first[i]);
  return most;
}

}  // namespace

TokenFile::TokenFile(void* mapping, size_t mapped_bytes)
    : mapping_(mapping), mapped_bytes_(mapped_bytes) {}

TokenFile::TokenFile(TokenFile&& other) noexcept { *this = std::move(other); }

TokenFile& TokenFile::operator=(TokenFile&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(tokens_, other.tokens_);
  std::swap(width_, other.width_);
  std::swap(size_, other.size_);
  std::swap(vocabulary_size_, other.vocabulary_size_);
  return *this;
}

TokenFile::~TokenFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

Result<TokenFile> TokenFile::open(const std::string& path, const TokenKey& key) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  struct stat status {};
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const size_t bytes = regular ? static_cast<size_t>(status.st_size) : 0;
  if (bytes < sizeof(TokenHeader) + kTrailerBytes) {
    ::close(file);
    return Failure{fmt::format("{}: not a token file: {} bytes, at least {} were expected", path,
                               bytes, sizeof(TokenHeader) + kTrailerBytes)};
  }
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  const Failure unmapped{fmt::format("cannot map {}: {}", path, system_reason())};
  ::close(file);
  if (mapping == MAP_FAILED) return unmapped;
  TokenFile tokens(mapping, bytes);
  if (const Status valid = tokens.check(path, key); !valid.ok()) return Failure{valid.error()};
  return tokens;
}

Status TokenFile::check(const std::string& path, const TokenKey& key) {
  const auto refuse = [&](const std::string& reason) {
    return Failure{fmt::format("{}: {}", path, reason)};
  };
  const char* const bytes = static_cast<const char*>(mapping_);
  TokenHeader header;
  std::memcpy(&header, bytes, sizeof header);
  const TokenHeader expected = make_token_header(key);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0)
    return refuse("not a token file");
  if (header.version != expected.version)
    return refuse(fmt::format("version {} is not known; {} is", header.version, expected.version));
  if (header.header_hash != token_header_hash(header)) return refuse("the header is damaged");
  if (std::memcmp(&header, &expected, sizeof header) != 0)
    return refuse("made from another text or by another tokenizer");

  // From here on the header is the one that this key has, so its numbers are sane.
  const uint64_t token_bytes = header.tokens * header.token_bytes;
  const uint64_t payload_bytes = token_bytes + token_padding(token_bytes);
  const uint64_t whole = sizeof header + payload_bytes + kTrailerBytes;
  if (mapped_bytes_ != whole)
    return refuse(fmt::format("{} bytes long, {} were expected", mapped_bytes_, whole));
  uint64_t digest = 0;
  std::memcpy(&digest, bytes + whole - kTrailerBytes, sizeof digest);
  tokens_ = bytes + sizeof header;
  if (digest != hash_bytes(tokens_, payload_bytes))
    return refuse(fmt::format("checksum of bytes {}-{} differs", sizeof header,
                              sizeof header + payload_bytes - 1));
  width_ = static_cast<int>(header.token_bytes);
  size_ = static_cast<int64_t>(header.tokens);
  vocabulary_size_ = static_cast<int64_t>(header.vocabulary_size);
  const uint64_t most =
      width_ == 2 ? largest<uint16_t>(tokens_, size_) : largest<uint32_t>(tokens_, size_);
  if (size_ > 0 && most >= header.vocabulary_size)
    return refuse(fmt::format("token {} is outside the vocabulary of {}", most, vocabulary_size_));
  return success();
}

void TokenFile::copy(int64_t begin, int64_t count, int32_t* out) const {
  FB_CHECK(begin >= 0 && count >= 0 && begin <= size_ - count, "tokens [{}, {}) of {}", begin,
           begin + count, size_);
  if (width_ == 2) {
    const auto* first = reinterpret_cast<const uint16_t*>(tokens_) + begin;
    std::copy_n(first, count, out);
  } else {
    std::memcpy(out, tokens_ + begin * 4, static_cast<size_t>(count) * 4);
  }
}

}  // namespace fullbore

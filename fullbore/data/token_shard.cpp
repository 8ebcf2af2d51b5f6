#include "fullbore/data/token_shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/input_file.h"

namespace fullbore {
namespace {

template <class Token>
uint64_t largest(const char* tokens, uint64_t count) {
  const auto* first = reinterpret_cast<const Token*>(tokens);
  Token most = 0;
  for (uint64_t i = 0; i < count; ++i) most = std::max(most, first[i]);
  return most;
}

/// Ascending, and the last is `total`; none at all only for a total of 0.
bool are_ends(std::span<const uint64_t> ends, uint64_t total) {
  return ends.empty() ? total == 0
                      : ends.back() == total && std::is_sorted(ends.begin(), ends.end());
}

}  // namespace

TokenShard::TokenShard(std::string path, void* mapping, size_t mapped_bytes)
    : path_(std::move(path)), mapping_(mapping), mapped_bytes_(mapped_bytes) {}

TokenShard::TokenShard(TokenShard&& other) noexcept { *this = std::move(other); }

TokenShard& TokenShard::operator=(TokenShard&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(header_, other.header_);
  std::swap(footer_, other.footer_);
  std::swap(tokens_, other.tokens_);
  std::swap(document_ends_, other.document_ends_);
  std::swap(file_ends_, other.file_ends_);
  std::swap(block_hashes_, other.block_hashes_);
  std::swap(tokenizer_json_, other.tokenizer_json_);
  return *this;
}

TokenShard::~TokenShard() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

Result<TokenShard> TokenShard::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  struct stat status {};
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const size_t bytes = regular ? static_cast<size_t>(status.st_size) : 0;
  constexpr size_t kLeast = sizeof(TokenHeader) + sizeof(TokenFooter);
  if (bytes < kLeast) {
    ::close(file);
    return Failure{fmt::format("{}: not a token shard: {} bytes, at least {} were expected", path,
                               bytes, kLeast)};
  }
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  const Failure unmapped{fmt::format("cannot map {}: {}", path, system_reason())};
  ::close(file);
  if (mapping == MAP_FAILED) return unmapped;
  TokenShard shard(path, mapping, bytes);
  if (const Status valid = shard.check(); !valid.ok()) return Failure{valid.error()};
  return shard;
}

Failure TokenShard::refuse(const std::string& reason) const {
  return {fmt::format("{}: {}", path_, reason)};
}

Status TokenShard::check() {
  const char* const bytes = static_cast<const char*>(mapping_);
  std::memcpy(&header_, bytes, sizeof header_);
  std::memcpy(&footer_, bytes + mapped_bytes_ - sizeof footer_, sizeof footer_);
  if (std::memcmp(header_.magic, kTokenMagic, sizeof kTokenMagic) != 0)
    return refuse("not a token shard");
  if (header_.version != kTokenVersion)
    return refuse(
        fmt::format("token shard of version {}; {} is known. Make it again by fullbore "
                    "data tokenize",
                    header_.version, kTokenVersion));
  if (header_.header_hash != token_header_hash(header_))
    return refuse("the header, bytes 0-63, is damaged");
  if (header_.token_bytes != token_width(header_.vocabulary_size) || header_.zero != 0)
    return refuse("the header, bytes 0-63, contradicts itself");
  if (footer_.footer_hash != token_footer_hash(footer_))
    return refuse(fmt::format("the footer, bytes {}-{}, is damaged or cut off",
                              mapped_bytes_ - sizeof footer_, mapped_bytes_ - 1));
  if (Status s = check_structure(); !s.ok()) return s;
  return check_contents();
}

Status TokenShard::check_structure() {
  // Each number is bounded by the file's length before it is multiplied.
  const uint64_t whole = mapped_bytes_;
  const bool sane = footer_.tokens <= whole && footer_.documents <= whole &&
                    footer_.files <= whole && footer_.tokenizer_bytes <= whole;
  const uint64_t token_bytes = sane ? padded_to_8(footer_.tokens * header_.token_bytes) : 0;
  const uint64_t tables = sane ? (footer_.documents + footer_.files) * 8 : 0;
  const uint64_t payload = token_bytes + tables + (sane ? padded_to_8(footer_.tokenizer_bytes) : 0);
  const uint64_t blocks = (payload + kTokenBlockBytes - 1) / kTokenBlockBytes;
  const uint64_t expected = sizeof header_ + payload + blocks * 8 + sizeof footer_;
  if (!sane || expected != whole)
    return refuse(fmt::format("{} bytes long, its footer asks for {}", whole,
                              sane ? std::to_string(expected) : "more"));
  const char* at = static_cast<const char*>(mapping_) + sizeof header_;
  const auto numbers = [&](uint64_t count) {
    const std::span<const uint64_t> span(reinterpret_cast<const uint64_t*>(at), count);
    at += count * 8;
    return span;
  };
  tokens_ = at;
  at += token_bytes;
  document_ends_ = numbers(footer_.documents);
  file_ends_ = numbers(footer_.files);
  tokenizer_json_ = {at, footer_.tokenizer_bytes};
  at += padded_to_8(footer_.tokenizer_bytes);
  block_hashes_ = numbers(blocks);
  if (footer_.blocks_hash != hash_bytes(block_hashes_.data(), blocks * 8))
    return refuse(fmt::format("the block hashes, bytes {}-{}, are damaged",
                              sizeof header_ + payload, whole - sizeof footer_ - 1));
  return check_blocks(sizeof header_ + payload);
}

Status TokenShard::check_blocks(uint64_t end) const {
  const char* const bytes = static_cast<const char*>(mapping_);
  for (uint64_t block = 0; block < block_hashes_.size(); ++block) {
    const uint64_t begin = sizeof header_ + block * kTokenBlockBytes;
    const uint64_t size = std::min(kTokenBlockBytes, end - begin);
    if (hash_bytes(bytes + begin, size) != block_hashes_[block])
      return refuse(fmt::format("the checksum of bytes {}-{} differs: they are damaged", begin,
                                begin + size - 1));
    forget(begin, begin + size);
  }
  return success();
}

// The pages stay in the system's cache, and come back as they are wanted: a corpus that is looked through once would be
// counted as this process's memory, all of it.
void TokenShard::forget(uint64_t begin, uint64_t end) const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  ::madvise(static_cast<char*>(mapping_) + begin, end - begin, MADV_DONTNEED);
}

uint64_t TokenShard::largest_token() const {
  const uint64_t width = header_.token_bytes;
  const uint64_t piece = kTokenBlockBytes / width;
  uint64_t most = 0;
  for (uint64_t begin = 0; begin < footer_.tokens; begin += piece) {
    const uint64_t count = std::min(piece, footer_.tokens - begin);
    const char* const at = tokens_ + begin * width;
    most = std::max(most, width == 2 ? largest<uint16_t>(at, count) : largest<uint32_t>(at, count));
    const auto offset = static_cast<uint64_t>(at - static_cast<const char*>(mapping_));
    forget(offset, offset + count * width);
  }
  return most;
}

Status TokenShard::check_contents() const {
  const uint64_t most = largest_token();
  if (footer_.tokens > 0 && most >= header_.vocabulary_size)
    return refuse(
        fmt::format("token {} is outside the vocabulary of {}", most, header_.vocabulary_size));
  if (header_.vocabulary_size > INT32_MAX || header_.end_of_document < -1 ||
      header_.end_of_document >= static_cast<int64_t>(header_.vocabulary_size))
    return refuse("the header, bytes 0-63, contradicts itself");
  if (!are_ends(document_ends_, footer_.tokens))
    return refuse("the document ends are not ascending up to the number of tokens");
  if (!are_ends(file_ends_, footer_.documents))
    return refuse("the file ends are not ascending up to the number of documents");
  return success();
}

void TokenShard::copy(int64_t begin, int64_t count, int32_t* out) const {
  FB_CHECK(begin >= 0 && count >= 0 && begin <= size() - count, "tokens [{}, {}) of {}", begin,
           begin + count, size());
  if (header_.token_bytes == 2) {
    const auto* first = reinterpret_cast<const uint16_t*>(tokens_) + begin;
    std::copy_n(first, count, out);
  } else {
    std::memcpy(out, tokens_ + begin * 4, static_cast<size_t>(count) * 4);
  }
}

bool is_token_shard(const std::string& path) {
  const Result<InputFile> file = InputFile::open(path);
  char magic[sizeof kTokenMagic] = {};
  return file.ok() && file.value().read_exactly(0, magic, sizeof magic).ok() &&
         std::memcmp(magic, kTokenMagic, sizeof magic) == 0;
}

}  // namespace fullbore

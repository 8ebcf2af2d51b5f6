#include "fullbore/data/token_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

template <class Token>
uint64_t largest(const char* tokens, uint64_t count) {
  Token most = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Token token;
    std::memcpy(&token, tokens + i * sizeof token, sizeof token);
    most = std::max(most, token);
  }
  return most;
}

/// Ascending, and the last is `total`; none at all only for a total of 0.
bool are_ends(std::span<const uint64_t> ends, uint64_t total) {
  return ends.empty() ? total == 0
                      : ends.back() == total && std::is_sorted(ends.begin(), ends.end());
}

}  // namespace

Result<TokenShard> TokenShard::open(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  constexpr size_t kLeast = sizeof(TokenHeader) + sizeof(TokenFooter);
  if (file.value().bytes() < kLeast)
    return Failure{fmt::format("{}: not a token shard: {} bytes, at least {} were expected", path,
                               file.value().bytes(), kLeast)};
  TokenShard shard(std::move(file).value());
  if (const Status valid = shard.check(); !valid.ok()) return Failure{valid.error()};
  return shard;
}

Failure TokenShard::refuse(const std::string& reason) const {
  return {fmt::format("{}: {}", path(), reason)};
}

uint64_t TokenShard::padded_token_bytes() const {
  return padded_to_8(footer_.tokens * header_.token_bytes);
}

uint64_t TokenShard::payload_bytes() const {
  return padded_token_bytes() + (footer_.documents + footer_.files) * 8 +
         padded_to_8(footer_.tokenizer_bytes);
}

Status TokenShard::check() {
  const uint64_t footer = file_.bytes() - sizeof footer_;
  if (Status s = file_.read_exactly(0, &header_, sizeof header_); !s.ok()) return s;
  if (Status s = file_.read_exactly(footer, &footer_, sizeof footer_); !s.ok()) return s;
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
    return refuse(
        fmt::format("the footer, bytes {}-{}, is damaged or cut off", footer, file_.bytes() - 1));
  std::vector<uint64_t> block_hashes;
  if (Status s = check_structure(block_hashes); !s.ok()) return s;
  return check_blocks(block_hashes);
}

Status TokenShard::check_structure(std::vector<uint64_t>& block_hashes) const {
  // Each number is bounded by the file's length before it is multiplied.
  const uint64_t whole = file_.bytes();
  const bool sane = footer_.tokens <= whole && footer_.documents <= whole &&
                    footer_.files <= whole && footer_.tokenizer_bytes <= whole;
  const uint64_t payload = sane ? payload_bytes() : 0;
  const uint64_t blocks = (payload + kTokenBlockBytes - 1) / kTokenBlockBytes;
  const uint64_t expected = sizeof header_ + payload + blocks * 8 + sizeof footer_;
  if (!sane || expected != whole)
    return refuse(fmt::format("{} bytes long, its footer asks for {}", whole,
                              sane ? std::to_string(expected) : "more"));
  block_hashes.resize(blocks);
  if (Status s = file_.read_exactly(sizeof header_ + payload, block_hashes.data(), blocks * 8);
      !s.ok())
    return s;
  if (footer_.blocks_hash != hash_bytes(block_hashes.data(), blocks * 8))
    return refuse(fmt::format("the block hashes, bytes {}-{}, are damaged",
                              sizeof header_ + payload, whole - sizeof footer_ - 1));
  return success();
}

// One pass over the file: checksums, the largest token, and what lies behind the tokens, which is kept.
Status TokenShard::check_blocks(std::span<const uint64_t> block_hashes) {
  const uint64_t payload = payload_bytes();
  const uint64_t token_end = footer_.tokens * header_.token_bytes;
  const uint64_t tables_begin = padded_token_bytes();
  std::string tables;
  tables.reserve(payload - tables_begin);
  std::vector<char> bytes(std::min(kTokenBlockBytes, payload));
  uint64_t most = 0;
  for (uint64_t block = 0; block < block_hashes.size(); ++block) {
    const uint64_t begin = block * kTokenBlockBytes;
    const uint64_t size = std::min(kTokenBlockBytes, payload - begin);
    if (Status s = file_.read_exactly(sizeof header_ + begin, bytes.data(), size); !s.ok())
      return s;
    if (hash_bytes(bytes.data(), size) != block_hashes[block])
      return refuse(fmt::format("the checksum of bytes {}-{} differs: they are damaged",
                                sizeof header_ + begin, sizeof header_ + begin + size - 1));
    if (begin < token_end) {
      const uint64_t count = std::min(size, token_end - begin) / header_.token_bytes;
      most = std::max(most, header_.token_bytes == 2 ? largest<uint16_t>(bytes.data(), count)
                                                     : largest<uint32_t>(bytes.data(), count));
    }
    if (begin + size > tables_begin) {
      const uint64_t skipped = tables_begin > begin ? tables_begin - begin : 0;
      tables.append(bytes.data() + skipped, size - skipped);
    }
  }
  const char* at = tables.data();
  for (std::vector<uint64_t>* numbers : {&document_ends_, &file_ends_}) {
    numbers->resize(numbers == &document_ends_ ? footer_.documents : footer_.files);
    if (!numbers->empty()) std::memcpy(numbers->data(), at, numbers->size() * 8);
    at += numbers->size() * 8;
  }
  tokenizer_json_.assign(at, footer_.tokenizer_bytes);
  return check_contents(most);
}

Status TokenShard::check_contents(uint64_t largest_token) const {
  if (footer_.tokens > 0 && largest_token >= header_.vocabulary_size)
    return refuse(fmt::format("token {} is outside the vocabulary of {}", largest_token,
                              header_.vocabulary_size));
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
  const auto read = [&](int64_t first, int64_t tokens, void* to) {
    const auto width = static_cast<uint64_t>(header_.token_bytes);
    const uint64_t offset = sizeof header_ + static_cast<uint64_t>(first) * width;
    const Status status = file_.read_exactly(offset, to, static_cast<size_t>(tokens) * width);
    if (!status.ok()) throw DataError(status.error() + ": it was changed while it was in use");
  };
  if (header_.token_bytes == 2) {
    std::array<uint16_t, 4096> block;
    for (int64_t done = 0; done < count;) {
      const auto tokens = std::min(count - done, static_cast<int64_t>(block.size()));
      read(begin + done, tokens, block.data());
      std::copy_n(block.data(), tokens, out + done);
      done += tokens;
    }
  } else {
    read(begin, count, out);
  }
  uint32_t most = 0;  // what is negative as an i32 is large
  for (int64_t i = 0; i < count; ++i) most = std::max(most, static_cast<uint32_t>(out[i]));
  if (count > 0 && most >= header_.vocabulary_size)
    throw DataError(fmt::format(
        "{}: token {} is outside the vocabulary of {}: the file was changed while it was in use",
        path(), most, header_.vocabulary_size));
}

bool is_token_shard(const std::string& path) {
  const Result<InputFile> file = InputFile::open(path);
  char magic[sizeof kTokenMagic] = {};
  return file.ok() && file.value().read_exactly(0, magic, sizeof magic).ok() &&
         std::memcmp(magic, kTokenMagic, sizeof magic) == 0;
}

}  // namespace fullbore

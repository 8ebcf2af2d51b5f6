#include "fullbore/base/siphash.h"

#include <bit>
#include <cstring>

namespace fullbore {
namespace {

static_assert(std::endian::native == std::endian::little, "words are little endian");

uint64_t word_at(const void* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

SipHash::SipHash(const SipKey& key) {
  const uint64_t k0 = word_at(key.data());
  const uint64_t k1 = word_at(key.data() + 8);
  v0_ = k0 ^ 0x736f6d6570736575;
  v1_ = k1 ^ 0x646f72616e646f6d ^ 0xee;  // 0xee: of 128 bits
  v2_ = k0 ^ 0x6c7967656e657261;
  v3_ = k1 ^ 0x7465646279746573;
}

void SipHash::rounds(int count) {
  for (int i = 0; i < count; ++i) {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }
}

void SipHash::compress(uint64_t word) {
  v3_ ^= word;
  rounds(2);
  v0_ ^= word;
}

void SipHash::add(std::string_view bytes) {
  size_t at = 0;
  for (; at < bytes.size() && bytes_ % 8 != 0; ++at) {
    tail_ |= uint64_t{static_cast<uint8_t>(bytes[at])} << (8 * (bytes_ % 8));
    if (++bytes_ % 8 == 0) {
      compress(tail_);
      tail_ = 0;
    }
  }
  for (; at + 8 <= bytes.size(); at += 8) {
    compress(word_at(bytes.data() + at));
    bytes_ += 8;
  }
  for (; at < bytes.size(); ++at)
    tail_ |= uint64_t{static_cast<uint8_t>(bytes[at])} << (8 * (bytes_++ % 8));
}

SipTag SipHash::finish() {
  compress(tail_ | bytes_ << 56);
  v2_ ^= 0xee;
  rounds(4);
  const uint64_t low = v0_ ^ v1_ ^ v2_ ^ v3_;
  v1_ ^= 0xdd;
  rounds(4);
  const uint64_t high = v0_ ^ v1_ ^ v2_ ^ v3_;
  SipTag tag{};
  std::memcpy(tag.data(), &low, sizeof low);
  std::memcpy(tag.data() + 8, &high, sizeof high);
  return tag;
}

SipTag sip_hash(const SipKey& key, std::string_view message) {
  SipHash hash(key);
  hash.add(message);
  return hash.finish();
}

}  // namespace fullbore

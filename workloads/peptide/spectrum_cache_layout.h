#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fullbore/base/hash.h"
#include "workloads/peptide/residues.h"

// Of files that spectrum_cache.h describes; its reader and its writer alone include this.
namespace fullbore::peptide {

static_assert(std::endian::native == std::endian::little, "caches of spectra are little endian");

struct CacheHeader {
  char magic[8];
  uint32_t version;
  uint32_t symbols;  ///< ids are below
  uint64_t alphabet_hash;
  uint64_t zero[4];
  uint64_t header_hash;  ///< xxHash64 of bytes 0-55
};
static_assert(sizeof(CacheHeader) == 64);

struct CacheFooter {
  uint64_t spectra;
  uint64_t record_bytes;
  uint64_t description_bytes;  ///< without padding
  uint64_t zero[3];
  uint64_t blocks_hash;  ///< xxHash64 of the block hashes
  uint64_t footer_hash;  ///< xxHash64 of the footer's bytes 0-55
};
static_assert(sizeof(CacheFooter) == 64);

struct CacheRecord {
  double precursor_mass;
  int32_t precursor_charge;
  uint32_t peaks;
  uint32_t ids;
  uint32_t zero[3];
};
static_assert(sizeof(CacheRecord) == 32);

constexpr char kCacheMagic[8] = {'F', 'B', 'S', 'P', 'E', 'C', 'T', 'R'};
constexpr uint32_t kCacheVersion = 1;
constexpr uint64_t kCacheBlockBytes = uint64_t{1} << 20;

constexpr uint64_t cache_padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }
constexpr uint64_t cache_record_bytes(uint64_t peaks, uint64_t ids) {
  return sizeof(CacheRecord) + 8 * peaks + cache_padded(4 * ids);
}
inline uint64_t cache_header_hash(const CacheHeader& header) {
  return hash_bytes(&header, offsetof(CacheHeader, header_hash));
}
inline uint64_t cache_footer_hash(const CacheFooter& footer) {
  return hash_bytes(&footer, offsetof(CacheFooter, footer_hash));
}
inline uint64_t alphabet_hash(const ResidueAlphabet& alphabet) {
  uint64_t hash = static_cast<uint64_t>(alphabet.mass_table());
  for (int32_t id = 0; id < alphabet.size(); ++id) hash = hash_text(alphabet.name(id), hash);
  return hash;
}

}  // namespace fullbore::peptide

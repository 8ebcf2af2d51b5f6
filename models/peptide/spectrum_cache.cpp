#include "models/peptide/spectrum_cache.h"

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
#include "fullbore/base/json.h"
#include "models/peptide/spectrum_cache_layout.h"

namespace fullbore::peptide {

SpectrumCache::SpectrumCache(std::string path, void* mapping, size_t mapped_bytes)
    : path_(std::move(path)), mapping_(mapping), mapped_bytes_(mapped_bytes) {}

SpectrumCache::SpectrumCache(SpectrumCache&& other) noexcept { *this = std::move(other); }

SpectrumCache& SpectrumCache::operator=(SpectrumCache&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(places_, other.places_);
  std::swap(description_, other.description_);
  std::swap(most_peaks_, other.most_peaks_);
  std::swap(most_residues_, other.most_residues_);
  return *this;
}

SpectrumCache::~SpectrumCache() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

Result<SpectrumCache> SpectrumCache::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  struct stat status {};
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const size_t bytes = regular ? static_cast<size_t>(status.st_size) : 0;
  constexpr size_t kLeast = sizeof(CacheHeader) + sizeof(CacheFooter);
  if (bytes < kLeast) {
    ::close(file);
    return Failure{fmt::format("{}: no cache of spectra: {} bytes, at least {} were expected", path,
                               bytes, kLeast)};
  }
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  const Failure unmapped{fmt::format("cannot map {}: {}", path, system_reason())};
  ::close(file);
  if (mapping == MAP_FAILED) return unmapped;
  SpectrumCache cache(path, mapping, bytes);
  if (const Status valid = cache.check(); !valid.ok()) return Failure{valid.error()};
  return cache;
}

Failure SpectrumCache::refuse(const std::string& reason) const {
  return {fmt::format("{}: {}", path_, reason)};
}

Status SpectrumCache::check() {
  const char* const bytes = static_cast<const char*>(mapping_);
  CacheHeader header{};
  CacheFooter footer{};
  std::memcpy(&header, bytes, sizeof header);
  std::memcpy(&footer, bytes + mapped_bytes_ - sizeof footer, sizeof footer);
  if (std::memcmp(header.magic, kCacheMagic, sizeof kCacheMagic) != 0)
    return refuse("no cache of spectra");
  if (header.version != kCacheVersion)
    return refuse(
        fmt::format("cache of version {}; {} is known. Make it again by fullbore peptide convert",
                    header.version, kCacheVersion));
  if (header.header_hash != cache_header_hash(header))
    return refuse("the header, bytes 0-63, is damaged");
  if (footer.footer_hash != cache_footer_hash(footer))
    return refuse(fmt::format("the footer, bytes {}-{}, is damaged or cut off",
                              mapped_bytes_ - sizeof footer, mapped_bytes_ - 1));
  // Each number is bounded by the file's length before it is multiplied.
  const uint64_t whole = mapped_bytes_;
  const bool sane = footer.spectra <= whole && footer.record_bytes <= whole &&
                    footer.record_bytes % 8 == 0 && footer.description_bytes <= whole;
  const uint64_t payload = sane ? footer.record_bytes + footer.spectra * sizeof(Place) +
                                      cache_padded(footer.description_bytes)
                                : 0;
  const uint64_t blocks = (payload + kCacheBlockBytes - 1) / kCacheBlockBytes;
  const uint64_t expected = sizeof header + payload + blocks * 8 + sizeof footer;
  if (!sane || expected != whole)
    return refuse(fmt::format("{} bytes long, its footer asks for {}", whole,
                              sane ? std::to_string(expected) : "more"));
  const char* const places = bytes + sizeof header + footer.record_bytes;
  places_ = {reinterpret_cast<const Place*>(places), footer.spectra};
  description_ = {places + footer.spectra * sizeof(Place), footer.description_bytes};
  const std::span hashes(reinterpret_cast<const uint64_t*>(bytes + sizeof header + payload),
                         blocks);
  if (footer.blocks_hash != hash_bytes(hashes.data(), hashes.size_bytes()))
    return refuse(fmt::format("the block hashes, bytes {}-{}, are damaged", sizeof header + payload,
                              whole - sizeof footer - 1));
  if (Status s = check_blocks(hashes, sizeof header + payload); !s.ok()) return s;
  return check_records(sizeof header + footer.record_bytes, header.symbols);
}

Status SpectrumCache::check_blocks(std::span<const uint64_t> hashes, uint64_t end) const {
  const char* const bytes = static_cast<const char*>(mapping_);
  for (uint64_t block = 0; block < hashes.size(); ++block) {
    const uint64_t begin = sizeof(CacheHeader) + block * kCacheBlockBytes;
    const uint64_t size = std::min(kCacheBlockBytes, end - begin);
    if (hash_bytes(bytes + begin, size) != hashes[block])
      return refuse(fmt::format("the checksum of bytes {}-{} differs: they are damaged", begin,
                                begin + size - 1));
  }
  return success();
}

Status SpectrumCache::check_records(uint64_t end, uint64_t symbols) {
  const auto contradiction = [&](uint64_t index) {
    return refuse(fmt::format("spectrum {} contradicts itself", index));
  };
  uint64_t at = sizeof(CacheHeader);
  for (uint64_t index = 0; index < size(); ++index) {
    if (places_[index].begin != at || end - at < sizeof(CacheRecord)) return contradiction(index);
    CacheRecord record{};
    std::memcpy(&record, static_cast<const char*>(mapping_) + at, sizeof record);
    const uint64_t bytes = cache_record_bytes(record.peaks, record.ids);
    if (bytes > end - at || record.precursor_charge < 1 || !(record.precursor_mass > 0))
      return contradiction(index);
    const CachedSpectrum spectrum = get(index);
    for (const int32_t id : spectrum.ids)
      if (id < kFirstResidue || static_cast<uint64_t>(id) >= symbols) return contradiction(index);
    for (const uint64_t peak : spectrum.peaks)
      if (!(peak_mz(peak) > 0) || !(peak_intensity(peak) > 0)) return contradiction(index);
    most_peaks_ = std::max(most_peaks_, spectrum.peaks.size());
    most_residues_ = std::max(most_residues_, spectrum.ids.size());
    at += bytes;
  }
  if (at != end) return refuse("there are bytes behind the last spectrum");
  return success();
}

CachedSpectrum SpectrumCache::get(uint64_t index) const {
  const char* const at = static_cast<const char*>(mapping_) + places_[index].begin;
  CacheRecord record{};
  std::memcpy(&record, at, sizeof record);
  const char* const peaks = at + sizeof record;
  return {{reinterpret_cast<const uint64_t*>(peaks), record.peaks},
          {reinterpret_cast<const int32_t*>(peaks + 8 * size_t{record.peaks}), record.ids},
          record.precursor_mass,
          record.precursor_charge};
}

Status SpectrumCache::check_alphabet(const ResidueAlphabet& alphabet) const {
  CacheHeader header{};
  std::memcpy(&header, mapping_, sizeof header);
  if (header.alphabet_hash == alphabet_hash(alphabet)) return success();
  const Result<nlohmann::json> parsed = parse_json(description_);
  const nlohmann::json json = parsed.ok() ? parsed.value() : nlohmann::json();
  const auto& text = json_excerpt;
  std::string made_for = "others";
  if (json.is_object() && json.contains("masses") && json.contains("modifications"))
    made_for = fmt::format("masses {} and modifications {}", text(json["masses"]),
                           text(json["modifications"]));
  std::vector<std::string> modifications;
  for (int32_t id = kFirstResidue + kResidues; id < alphabet.size(); ++id)
    modifications.push_back(alphabet.name(id));
  return refuse(fmt::format("was made for {}, and the model has masses \"{}\" and modifications {}",
                            made_for,
                            alphabet.mass_table() == MassTable::full ? "full" : "reference",
                            text(nlohmann::json(modifications))));
}

bool is_spectrum_cache(const std::string& path) {
  const Result<InputFile> file = InputFile::open(path);
  char magic[sizeof kCacheMagic] = {};
  return file.ok() && file.value().read_exactly(0, magic, sizeof magic).ok() &&
         std::memcmp(magic, kCacheMagic, sizeof magic) == 0;
}

}  // namespace fullbore::peptide

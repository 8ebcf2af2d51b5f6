#include "workloads/peptide/spectrum_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/json.h"
#include "workloads/peptide/spectrum_cache_layout.h"

namespace fullbore::peptide {

Result<SpectrumCache> SpectrumCache::open(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  constexpr size_t kLeast = sizeof(CacheHeader) + sizeof(CacheFooter);
  if (file.value().bytes() < kLeast)
    return Failure{fmt::format("{}: no cache of spectra: {} bytes, at least {} were expected", path,
                               file.value().bytes(), kLeast)};
  SpectrumCache cache(std::move(file).value());
  if (const Status valid = cache.check(); !valid.ok()) return Failure{valid.error()};
  return cache;
}

Failure SpectrumCache::refuse(const std::string& reason) const {
  return {fmt::format("{}: {}", path(), reason)};
}

Status SpectrumCache::check() {
  const uint64_t whole = file_.bytes();
  CacheHeader header{};
  CacheFooter footer{};
  if (Status s = file_.read_exactly(0, &header, sizeof header); !s.ok()) return s;
  if (Status s = file_.read_exactly(whole - sizeof footer, &footer, sizeof footer); !s.ok())
    return s;
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
                              whole - sizeof footer, whole - 1));
  // Each number is bounded by the file's length before it is multiplied.
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
  std::vector<uint64_t> hashes(blocks);
  if (Status s = file_.read_exactly(sizeof header + payload, hashes.data(), blocks * 8); !s.ok())
    return s;
  if (footer.blocks_hash != hash_bytes(hashes.data(), blocks * 8))
    return refuse(fmt::format("the block hashes, bytes {}-{}, are damaged", sizeof header + payload,
                              whole - sizeof footer - 1));
  alphabet_hash_ = header.alphabet_hash;
  symbols_ = header.symbols;
  records_end_ = sizeof header + footer.record_bytes;
  places_.resize(footer.spectra);
  description_.resize(footer.description_bytes);
  if (Status s = read_tables(footer.record_bytes, payload, hashes); !s.ok()) return s;
  return check_records();
}

// One pass over the file: checksums, and what lies behind the records, which is kept.
Status SpectrumCache::read_tables(uint64_t record_bytes, uint64_t payload,
                                  std::span<const uint64_t> hashes) {
  std::string tables;
  tables.reserve(payload - record_bytes);
  std::vector<char> bytes(std::min(kCacheBlockBytes, payload));
  for (uint64_t block = 0; block < hashes.size(); ++block) {
    const uint64_t begin = block * kCacheBlockBytes;
    const uint64_t size = std::min(kCacheBlockBytes, payload - begin);
    const uint64_t place = sizeof(CacheHeader) + begin;
    if (Status s = file_.read_exactly(place, bytes.data(), size); !s.ok()) return s;
    if (hash_bytes(bytes.data(), size) != hashes[block])
      return refuse(fmt::format("the checksum of bytes {}-{} differs: they are damaged", place,
                                place + size - 1));
    if (begin + size <= record_bytes) continue;
    const uint64_t skipped = record_bytes > begin ? record_bytes - begin : 0;
    tables.append(bytes.data() + skipped, size - skipped);
  }
  const size_t place_bytes = places_.size() * sizeof(Place);
  if (place_bytes > 0) std::memcpy(places_.data(), tables.data(), place_bytes);
  description_.assign(tables, place_bytes, description_.size());
  return success();
}

Status SpectrumCache::check_records() {
  const auto contradiction = [&](uint64_t index) {
    return refuse(fmt::format("spectrum {} contradicts itself", index));
  };
  uint64_t at = sizeof(CacheHeader);
  for (uint64_t index = 0; index < size(); ++index) {
    const uint64_t end = index + 1 < size() ? places_[index + 1].begin : records_end_;
    if (places_[index].begin != at || end < at || end > records_end_) return contradiction(index);
    at = end;
  }
  if (at != records_end_) return refuse("there are bytes behind the last spectrum");
  for (uint64_t index = 0; index < size(); ++index) {
    const Result<CachedSpectrum> spectrum = read(index);
    if (!spectrum.ok()) return Failure{spectrum.error()};
    if (spectrum.value().precursor_charge < 1 || !(spectrum.value().precursor_mass > 0))
      return contradiction(index);
    for (const uint64_t peak : spectrum.value().peaks)
      if (!(peak_mz(peak) > 0) || !(peak_intensity(peak) > 0)) return contradiction(index);
    most_peaks_ = std::max(most_peaks_, spectrum.value().peaks.size());
    most_residues_ = std::max(most_residues_, spectrum.value().ids.size());
  }
  return success();
}

Result<CachedSpectrum> SpectrumCache::read(uint64_t index) const {
  const uint64_t begin = places_[index].begin;
  const uint64_t bytes = (index + 1 < size() ? places_[index + 1].begin : records_end_) - begin;
  const auto contradiction = [&] {
    return refuse(fmt::format("spectrum {} contradicts itself", index));
  };
  if (bytes < sizeof(CacheRecord)) return contradiction();
  std::vector<char> buffer(bytes);
  if (Status s = file_.read_exactly(begin, buffer.data(), bytes); !s.ok())
    return Failure{s.error()};
  CacheRecord record{};
  std::memcpy(&record, buffer.data(), sizeof record);
  if (cache_record_bytes(record.peaks, record.ids) != bytes) return contradiction();
  CachedSpectrum spectrum;
  spectrum.precursor_mass = record.precursor_mass;
  spectrum.precursor_charge = record.precursor_charge;
  spectrum.peaks.resize(record.peaks);
  spectrum.ids.resize(record.ids);
  const char* at = buffer.data() + sizeof record;
  if (record.peaks > 0) std::memcpy(spectrum.peaks.data(), at, 8 * size_t{record.peaks});
  at += 8 * size_t{record.peaks};
  if (record.ids > 0) std::memcpy(spectrum.ids.data(), at, 4 * size_t{record.ids});
  for (const int32_t id : spectrum.ids)
    if (id < kFirstResidue || static_cast<uint64_t>(id) >= symbols_) return contradiction();
  return spectrum;
}

CachedSpectrum SpectrumCache::get(uint64_t index) const {
  Result<CachedSpectrum> spectrum = read(index);
  // Whoever reads has room for the largest that there was.
  if (spectrum.ok() &&
      (spectrum.value().peaks.size() > most_peaks_ || spectrum.value().ids.size() > most_residues_))
    spectrum = refuse(fmt::format("spectrum {} contradicts itself", index));
  if (!spectrum.ok())
    throw DataError(spectrum.error() + ": the file was changed while it was in use");
  return std::move(spectrum).value();
}

Status SpectrumCache::check_alphabet(const ResidueAlphabet& alphabet) const {
  if (alphabet_hash_ == alphabet_hash(alphabet)) return success();
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

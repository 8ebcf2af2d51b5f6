#include <cstring>
#include <utility>

#include "fullbore/base/json.h"
#include "workloads/peptide/spectrum_cache.h"
#include "workloads/peptide/spectrum_cache_layout.h"

namespace fullbore::peptide {
namespace {

template <class Value>
std::string_view bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}
template <class Value>
std::string_view bytes_of_one(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

uint64_t hash_of_peptide(const ResidueAlphabet& alphabet, const std::vector<int32_t>& ids) {
  std::string letters;
  for (const int32_t id : ids)
    if (alphabet.is_residue(id)) letters += alphabet.letter(id) == 'I' ? 'L' : alphabet.letter(id);
  return hash_text(letters);
}

}  // namespace

SpectrumCacheWriter::SpectrumCacheWriter(AtomicFile file, ResidueAlphabet alphabet)
    : file_(std::move(file)), alphabet_(std::move(alphabet)) {}

Result<SpectrumCacheWriter> SpectrumCacheWriter::create(const std::string& path,
                                                        const ResidueAlphabet& alphabet,
                                                        FileSystem& files) {
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  CacheHeader header{};
  std::memcpy(header.magic, kCacheMagic, sizeof kCacheMagic);
  header.version = kCacheVersion;
  header.symbols = static_cast<uint32_t>(alphabet.size());
  header.alphabet_hash = alphabet_hash(alphabet);
  header.header_hash = cache_header_hash(header);
  if (const Status s = file.value().write(bytes_of_one(header)); !s.ok()) return Failure{s.error()};
  return SpectrumCacheWriter(std::move(file).value(), alphabet);
}

// Every byte between header and block hashes goes through here, and so into a hash.
Status SpectrumCacheWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(bytes.size(), kCacheBlockBytes - block_.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < kCacheBlockBytes) continue;
    block_hashes_.push_back(hash_text(block_));
    if (Status s = file_.write(block_); !s.ok()) return s;
    block_.clear();
  }
  return success();
}

Status SpectrumCacheWriter::append(const PreparedSpectrum& spectrum) {
  CacheRecord record{};
  record.precursor_mass = spectrum.precursor_mass;
  record.precursor_charge = spectrum.precursor_charge;
  record.peaks = static_cast<uint32_t>(spectrum.peaks.size());
  record.ids = static_cast<uint32_t>(spectrum.ids.size());
  record_ = bytes_of_one(record);
  record_ += bytes_of(spectrum.peaks);
  record_ += bytes_of(spectrum.ids);
  record_.resize(cache_record_bytes(record.peaks, record.ids));
  places_.push_back({sizeof(CacheHeader) + end_, hash_of_peptide(alphabet_, spectrum.ids)});
  end_ += record_.size();
  return write(record_);
}

Status SpectrumCacheWriter::commit(const std::string& description) {
  nlohmann::ordered_json json = parse_ordered_json(description).value();
  json["masses"] = alphabet_.mass_table() == MassTable::full ? "full" : "reference";
  json["modifications"] = nlohmann::ordered_json::array();
  for (int32_t id = kFirstResidue + kResidues; id < alphabet_.size(); ++id)
    json["modifications"].push_back(alphabet_.name(id));
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  CacheFooter footer{};
  footer.spectra = places_.size();
  footer.record_bytes = end_;
  footer.description_bytes = text.size();
  text.resize(cache_padded(text.size()));
  if (Status s = write(bytes_of(places_)); !s.ok()) return s;
  if (Status s = write(text); !s.ok()) return s;
  if (!block_.empty()) {
    block_hashes_.push_back(hash_text(block_));
    if (Status s = file_.write(block_); !s.ok()) return s;
  }
  footer.blocks_hash = hash_text(bytes_of(block_hashes_));
  footer.footer_hash = cache_footer_hash(footer);
  if (Status s = file_.write(bytes_of(block_hashes_)); !s.ok()) return s;
  if (Status s = file_.write(bytes_of_one(footer)); !s.ok()) return s;
  return file_.commit();
}

}  // namespace fullbore::peptide

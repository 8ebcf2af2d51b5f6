#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/input_file.h"
#include "fullbore/base/result.h"
#include "workloads/peptide/prepare_spectrum.h"

namespace fullbore::peptide {

/// One spectrum of a cache.
struct CachedSpectrum {
  std::vector<uint64_t> peaks;  ///< as peak_runs.h packs them, by m/z
  std::vector<int32_t> ids;
  double precursor_mass = 0;
  int precursor_charge = 0;
};

/// Prepared spectra in a file, with the alphabet and the settings that made them. Spectra are read when they are
/// asked for (pread), not mapped: a file that is cut short or fails while it is in use is then a DataError with its
/// name and not a SIGBUS, and resident memory does not grow with their peaks. Little endian:
///
///   0           header, 64 bytes
///   64          records: 32 bytes of numbers, peaks u64 each, ids i32 each, zero-padded to 8 bytes
///               places, 16 bytes each: where a record begins, and the hash of its peptide
///               description: JSON, zero-padded to 8 bytes
///               block hashes, u64 each: xxHash64 of every MiB from byte 64 to here
///   end - 64    footer, 64 bytes: last, so that a cache is written from front to back
class SpectrumCache {
 public:
  /// Checks everything: header, length, checksums, every record. Failure names the path, and the bytes
  /// that are damaged.
  static Result<SpectrumCache> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return places_.size(); }
  /// index < size(); safe from any thread. DataError if the file was changed since it was opened.
  CachedSpectrum get(uint64_t index) const;
  /// The same for spectra of one peptide, whatever its modifications; I and L are one.
  uint64_t peptide_hash(uint64_t index) const { return places_[index].peptide; }
  size_t most_peaks() const { return most_peaks_; }
  size_t most_residues() const { return most_residues_; }  ///< in one peptide
  std::string_view description() const { return description_; }
  /// Failure unless these are the residues, modifications and masses that the ids stand for.
  Status check_alphabet(const ResidueAlphabet& alphabet) const;

  struct Place {
    uint64_t begin;
    uint64_t peptide;
  };

 private:
  explicit SpectrumCache(InputFile file) : file_(std::move(file)) {}
  Status check();
  Status read_tables(uint64_t record_bytes, uint64_t payload, std::span<const uint64_t> hashes);
  Status check_records();
  /// Failure if the file cannot be read, or the record does not fill its place with peaks and known ids.
  Result<CachedSpectrum> read(uint64_t index) const;
  Failure refuse(const std::string& reason) const;

  InputFile file_;
  uint64_t alphabet_hash_ = 0;
  uint64_t symbols_ = 0;
  uint64_t records_end_ = 0;
  std::vector<Place> places_;
  std::string description_;
  size_t most_peaks_ = 0;
  size_t most_residues_ = 0;
};

/// Whether the file begins as a cache of spectra does.
bool is_spectrum_cache(const std::string& path);

/// Writes a cache from front to back; it has its name only when it is complete and on the disk.
class SpectrumCacheWriter {
 public:
  static Result<SpectrumCacheWriter> create(const std::string& path,
                                            const ResidueAlphabet& alphabet,
                                            FileSystem& files = system_files());
  /// `spectrum` has a sequence.
  Status append(const PreparedSpectrum& spectrum);
  uint64_t spectra() const { return places_.size(); }
  /// Ends the cache. `description`: JSON of an object, to which the alphabet is added. Call once.
  Status commit(const std::string& description);

 private:
  SpectrumCacheWriter(AtomicFile file, ResidueAlphabet alphabet);
  Status write(std::string_view bytes);

  AtomicFile file_;
  ResidueAlphabet alphabet_;
  uint64_t end_ = 0;  // of the records
  std::vector<SpectrumCache::Place> places_;
  std::string block_;  // bytes written since the last whole block
  std::vector<uint64_t> block_hashes_;
  std::string record_;
};

}  // namespace fullbore::peptide

// Any bytes as a cache of spectra: refused with the path, or every spectrum can be read.
#include "workloads/peptide/spectrum_cache.h"

#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  const auto cache = peptide::SpectrumCache::open(file.path());
  if (!cache.ok()) {
    require(cache.error().find(file.path()) != std::string::npos);
    return 0;
  }
  const Status status = cache.value().check_alphabet(peptide::ResidueAlphabet());
  require(status.ok() || status.error().starts_with(file.path()));
  for (uint64_t i = 0; i < cache.value().size(); ++i) {
    const peptide::CachedSpectrum spectrum = cache.value().get(i);
    require(spectrum.precursor_mass > 0 && spectrum.precursor_charge >= 1);
    require(spectrum.peaks.size() <= cache.value().most_peaks());
    for (const int32_t id : spectrum.ids) require(id >= peptide::kFirstResidue);
    for (const uint64_t peak : spectrum.peaks) require(peptide::peak_mz(peak) > 0);
  }
  return 0;
}

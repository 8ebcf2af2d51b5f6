#include "workloads/peptide/write_synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/error.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/spectrum_batch.h"
#include "workloads/peptide/spectrum_cache.h"
#include "workloads/peptide/synthetic.h"

namespace fullbore::peptide {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

/// Memory for the largest batch of a source.
class BatchMemory {
 public:
  explicit BatchMemory(const BatchSource& source) {
    for (const BatchField& field : source.fields()) {
      fields_.emplace_back((static_cast<size_t>(field.type.bytes()) + 7) / 8);
      buffers_.push_back(fields_.back().data());
    }
  }
  std::span<void* const> buffers() const { return buffers_; }

 private:
  std::vector<std::vector<uint64_t>> fields_;  // aligned to 8 bytes
  std::vector<void*> buffers_;
};

void take_row(const SpectrumRow& row, PreparedSpectrum& spectrum) {
  spectrum.peaks.clear();
  for (size_t i = 0; i < row.mz.size() && row.peak_mask[i] != 0; ++i)
    spectrum.peaks.push_back(pack_peak(row.mz[i], row.intensity[i]));
  spectrum.precursor_mass = double{*row.precursor_mass};
  spectrum.precursor_charge = *row.precursor_charge;
  spectrum.ids.clear();
  for (const int32_t id : row.targets)
    if (id >= kFirstResidue) spectrum.ids.push_back(id);
}

std::string mgf_block(uint64_t index, const std::string& stage, const PreparedSpectrum& spectrum,
                      const ResidueAlphabet& alphabet) {
  std::string text = fmt::format(
      "BEGIN IONS\nTITLE=synthetic {} stage {}\nPEPMASS={}\nCHARGE={}+\nSCANS={}\nSEQ={}\n", index,
      stage, precursor_mz(spectrum.precursor_mass, spectrum.precursor_charge, alphabet.constants()),
      spectrum.precursor_charge, index, alphabet.text(spectrum.ids));
  for (const uint64_t peak : spectrum.peaks)
    text += fmt::format("{} {}\n", peak_mz(peak), peak_intensity(peak));
  return text + "END IONS\n";
}

}  // namespace

Status draw_synthetic(const SyntheticOptions& options, const Curriculum& curriculum,
                      const SyntheticRange& range,
                      const std::function<Status(uint64_t index, const PreparedSpectrum&)>& take) {
  const SyntheticBatches batches(options, curriculum);
  const auto rows = static_cast<uint64_t>(options.batch_size);
  if (range.first % rows != 0)
    throw UsageError(
        fmt::format("spectrum {} is not the first of a batch of {}", range.first, rows));
  const BatchMemory memory(batches);
  PreparedSpectrum spectrum;
  for (uint64_t done = 0; done < range.count; done += rows) {
    const uint64_t position = (range.first + done) / rows;
    batches.fill(position, memory.buffers());
    const int64_t peaks = batches.shapes()[batches.shape_at(position)][0].type.shape[1];
    for (uint64_t row = 0; row < std::min(rows, range.count - done); ++row) {
      take_row(
          spectrum_row(memory.buffers(), static_cast<int64_t>(row), peaks, options.max_sequence),
          spectrum);
      if (Status taken = take(range.first + done + row, spectrum); !taken.ok()) return taken;
    }
  }
  return success();
}

Status write_synthetic_mgf(const std::string& path, const SyntheticOptions& options,
                           const Curriculum& curriculum, const SyntheticRange& range) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok()) return Failure{file.error()};
  const ResidueAlphabet alphabet(options.masses);
  const auto rows = static_cast<uint64_t>(options.batch_size);
  std::string text = fmt::format("# {} synthetic spectra, the first {}, seed {}\n", range.count,
                                 range.first, options.seed);
  Status status = draw_synthetic(
      options, curriculum, range, [&](uint64_t index, const PreparedSpectrum& spectrum) {
        text += mgf_block(index, curriculum[stage_at(curriculum, index / rows)].name, spectrum,
                          alphabet);
        if (text.size() < kPieceBytes) return success();
        Status written = file.value().write(text);
        text.clear();
        return written;
      });
  if (status.ok()) status = file.value().write(text);
  return status.ok() ? file.value().commit() : status;
}

Status write_synthetic_cache(const std::string& path, const ResidueAlphabet& alphabet,
                             const SyntheticOptions& options, const Curriculum& curriculum,
                             const SyntheticRange& range) {
  Result<SpectrumCacheWriter> writer = SpectrumCacheWriter::create(path, alphabet);
  if (!writer.ok()) return Failure{writer.error()};
  const Status status = draw_synthetic(
      options, curriculum, range,
      [&](uint64_t, const PreparedSpectrum& spectrum) { return writer.value().append(spectrum); });
  if (!status.ok()) return status;
  const nlohmann::ordered_json description = {{"sources", {"synthetic spectra"}},
                                              {"first", range.first},
                                              {"kept", range.count},
                                              {"batch_size", options.batch_size},
                                              {"seed", options.seed}};
  return writer.value().commit(description.dump());
}

}  // namespace fullbore::peptide

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/data/batch_source.h"

namespace fullbore::peptide {

/// The fields of every batch of `batch_size` (B) spectra of `peaks` (P) slots, with targets of `sequence`
/// (S) slots, in this order: mz f32 [B,P], intensity f32 [B,P], peak_mask bool [B,P],
/// precursor_mass f32 [B] (neutral, Da), precursor_charge i32 [B], targets i32 [B,S],
/// target_mask bool [B,S], spectrum_weight f32 [], and on demand precursor_weight f32 [].
std::vector<BatchField> spectrum_fields(int64_t batch_size, int64_t peaks, int64_t sequence,
                                        bool has_precursor_weight);

/// Where one spectrum is written to: a row of a batch.
struct SpectrumRow {
  std::span<float> mz;         ///< [P], ascending, 0 behind the last peak
  std::span<float> intensity;  ///< [P]
  std::span<uint8_t> peak_mask;
  float* precursor_mass = nullptr;
  int32_t* precursor_charge = nullptr;
  std::span<int32_t> targets;  ///< [S]
  std::span<uint8_t> target_mask;
};

/// Row `row` of buffers of such fields.
SpectrumRow spectrum_row(std::span<void* const> buffers, int64_t row, int64_t peaks,
                         int64_t sequence);
/// Writes the weights of the losses that go with the batch.
void write_weights(std::span<void* const> buffers, double spectrum_weight, double precursor_weight);

/// Targets are [start, residues, end] or the residues alone, cut at S, padded with kPad.
void write_target(std::span<const int32_t> ids, bool start_and_end, const SpectrumRow& row);
/// The first P of peaks as peak_runs.h packs them, padded with 0.
void write_peaks(std::span<const uint64_t> peaks, const SpectrumRow& row);

}  // namespace fullbore::peptide

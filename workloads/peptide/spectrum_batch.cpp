#include "workloads/peptide/spectrum_batch.h"

#include <algorithm>

#include "workloads/peptide/peak_runs.h"
#include "workloads/peptide/residues.h"

namespace fullbore::peptide {

std::vector<BatchField> spectrum_fields(int64_t batch_size, int64_t peaks, int64_t sequence,
                                        bool has_precursor_weight) {
  const Shape by_peak{batch_size, peaks};
  const Shape by_slot{batch_size, sequence};
  const Shape by_spectrum{batch_size};
  std::vector<BatchField> fields{{"mz", {DType::f32, by_peak}},
                                 {"intensity", {DType::f32, by_peak}},
                                 {"peak_mask", {DType::boolean, by_peak}},
                                 {"precursor_mass", {DType::f32, by_spectrum}},
                                 {"precursor_charge", {DType::i32, by_spectrum}},
                                 {"targets", {DType::i32, by_slot}},
                                 {"target_mask", {DType::boolean, by_slot}},
                                 {"spectrum_weight", {DType::f32, Shape{}}}};
  if (has_precursor_weight) fields.push_back({"precursor_weight", {DType::f32, Shape{}}});
  return fields;
}

SpectrumRow spectrum_row(std::span<void* const> buffers, int64_t row, int64_t peaks,
                         int64_t sequence) {
  const auto p = static_cast<size_t>(peaks);
  const auto s = static_cast<size_t>(sequence);
  return {.mz = {static_cast<float*>(buffers[0]) + row * peaks, p},
          .intensity = {static_cast<float*>(buffers[1]) + row * peaks, p},
          .peak_mask = {static_cast<uint8_t*>(buffers[2]) + row * peaks, p},
          .precursor_mass = static_cast<float*>(buffers[3]) + row,
          .precursor_charge = static_cast<int32_t*>(buffers[4]) + row,
          .targets = {static_cast<int32_t*>(buffers[5]) + row * sequence, s},
          .target_mask = {static_cast<uint8_t*>(buffers[6]) + row * sequence, s}};
}

void write_weights(std::span<void* const> buffers, double spectrum_weight,
                   double precursor_weight) {
  *static_cast<float*>(buffers[7]) = static_cast<float>(spectrum_weight);
  if (buffers.size() > 8) *static_cast<float*>(buffers[8]) = static_cast<float>(precursor_weight);
}

void write_target(std::span<const int32_t> ids, bool start_and_end, const SpectrumRow& row) {
  const size_t slots = row.targets.size();
  size_t used = 0;
  const auto add = [&](int32_t id) {
    if (used < slots) row.targets[used++] = id;
  };
  if (start_and_end) add(kStart);
  for (const int32_t id : ids) add(id);
  if (start_and_end) add(kEnd);
  std::fill(row.targets.begin() + static_cast<std::ptrdiff_t>(used), row.targets.end(), kPad);
  for (size_t i = 0; i < slots; ++i) row.target_mask[i] = i < used ? 1 : 0;
}

void write_peaks(std::span<const uint64_t> peaks, const SpectrumRow& row) {
  const size_t slots = row.mz.size();
  const size_t used = std::min(slots, peaks.size());
  for (size_t i = 0; i < used; ++i) {
    row.mz[i] = peak_mz(peaks[i]);
    row.intensity[i] = peak_intensity(peaks[i]);
    row.peak_mask[i] = 1;
  }
  for (size_t i = used; i < slots; ++i) {
    row.mz[i] = 0;
    row.intensity[i] = 0;
    row.peak_mask[i] = 0;
  }
}

}  // namespace fullbore::peptide

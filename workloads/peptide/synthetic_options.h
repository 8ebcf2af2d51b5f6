#pragma once
#include <cstdint>
#include <vector>

#include "workloads/peptide/curriculum.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/residues.h"

namespace fullbore::peptide {

struct ChargeShare {
  int charge = 2;
  double share = 1;
};

/// What all synthetic spectra of a run have in common.
struct SyntheticOptions {
  int64_t batch_size = 64;
  int64_t max_peaks = 100;    ///< P, slots of peaks
  int64_t max_sequence = 25;  ///< S, slots of the target
  bool trim = true;           ///< batches are as wide as their stage needs at most, and not P
  bool start_and_end = true;  ///< targets are [start, residues, end], else the residues alone
  std::vector<IonType> ion_types = {IonType::b, IonType::y};
  bool neutral_losses = false;
  std::vector<ChargeShare> charges = {{2, 0.7}, {3, 0.25}, {4, 0.05}};
  MassTable masses = MassTable::reference;
  bool scale_to_base_peak = false;  ///< the most intense peak gets 1
  int64_t most_intense = 0;         ///< keep so many of the most intense peaks; 0: P of lowest m/z
  uint64_t seed = 0;
};
/// UsageError that names the field.
void check_synthetic_options(const SyntheticOptions& options);

/// The most peaks that a spectrum can have before it is cut to P: fragments, their losses, noise.
int64_t most_peaks(const SyntheticOptions& options, const SpectrumSettings& settings);

}  // namespace fullbore::peptide

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/peptide/residues.h"

namespace fullbore::peptide {

/// When residues of two sequences are the same place and the same residue, in Da.
struct MatchTolerance {
  double cumulative = 0.5;  ///< of the masses from an end up to and including the residue
  double residue = 0.1;
};

/// Which residues match by mass, from both ends: [max(predicted, truth) residues].
///
/// Both sequences are walked from the N-terminus. Where the masses up to and including the current
/// residues agree, the two are a pair, which matches if their own masses agree, and both advance; else
/// the lighter side does. Unless all match then, the same from the C-terminus, down to the first index
/// that does not; what it finds replaces what was found. A pair stands at the larger of its indices.
/// Source: Tran et al. 2017, PNAS 114:8247 (DeepNovo); Yilmaz et al. 2024, Nat. Commun. 15:6427
/// (Casanovo).
std::vector<bool> match_residues(std::span<const double> predicted, std::span<const double> truth,
                                 MatchTolerance tolerance = {});

/// The residues and terminal modifications of a row of token ids: up to kEnd or the first slot whose
/// mask is 0 (a missing mask is all ones), without kPad and kStart.
std::vector<int32_t> decoded_ids(std::span<const int32_t> ids, std::span<const uint8_t> mask = {});

std::vector<double> residue_masses(std::span<const int32_t> ids, const ResidueAlphabet& alphabet);

/// (mass - reference) / reference in parts per million, signed.
double mass_error_ppm(double mass, double reference);

/// A measured precursor may be one of the heavier isotopes of what it is taken for.
struct PrecursorTolerance {
  double ppm = 50;
  int first_isotope = 0;
  int last_isotope = 1;
};
/// Between carbon-13 and carbon-12, in Da.
inline constexpr double kIsotopeSpacing = 1.0033548;

/// Whether the peptide's mass is the measured one less any of these isotopes' spacings, within the
/// tolerance of the measured one. Both neutral, in Da.
bool is_within(const PrecursorTolerance& tolerance, double peptide_mass, double measured_mass);

/// Whether the sequences are the same ids, or the same but for I and L.
bool are_equal(std::span<const int32_t> a, std::span<const int32_t> b, bool is_leucine_isoleucine);
/// The id by which I and L are one.
int32_t merged_leucine(int32_t id);

}  // namespace fullbore::peptide

#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/peptide/residues.h"

namespace fullbore::peptide {

/// Fragments of one broken bond of the backbone: a and b keep the N-terminus, y the C-terminus.
enum class IonType : uint8_t { b, y, a };
std::optional<IonType> parse_ion_type(std::string_view name);
std::string_view ion_type_name(IonType type);

/// Sums of masses from the N-terminus on: prefix[i] is that of the first i + 1 residues, a modified
/// terminus included. Ids that are no residue add nothing.
std::vector<double> prefix_masses(const ResidueAlphabet& alphabet, std::span<const int32_t> ids);

/// M = sum of the residues' masses + water, in Da.
double neutral_mass(const ResidueAlphabet& alphabet, std::span<const int32_t> ids);
/// (M + z p) / z, z >= 1.
inline double precursor_mz(double neutral_mass, int charge, const MassConstants& constants) {
  return (neutral_mass + charge * constants.proton) / charge;
}
/// M of a precursor that was observed at `mz` with `charge`.
inline double mass_of_precursor(double mz, int charge, const MassConstants& constants) {
  return charge * (mz - constants.proton);
}
/// m/z with `charge` of what has `mz` with charge 1.
inline double charged_mz(double mz, int charge, const MassConstants& constants) {
  return (mz + (charge - 1) * constants.proton) / charge;
}
inline double mass_of(NeutralLoss loss, const MassConstants& constants) {
  if (loss == NeutralLoss::none) return 0;
  return loss == NeutralLoss::water ? constants.water : constants.ammonia;
}

/// The one place where fragments get their masses. mz[i - 1] is that of ion i with charge 1,
/// i = 1 .. n - 1, for the prefix masses of n residues; mz holds n - 1:
///   b_i = c_i + p,  a_i = b_i - CO,  y_i = c_n - c_{n-i} + water + p.
inline void fragment_series(IonType type, std::span<const double> prefix,
                            const MassConstants& constants, double* mz) {
  const size_t n = prefix.size();
  if (type == IonType::y) {
    const double whole = prefix[n - 1] + constants.water + constants.proton;
    for (size_t i = 1; i < n; ++i) mz[i - 1] = whole - prefix[n - 1 - i];
    return;
  }
  const double end = constants.proton - (type == IonType::a ? constants.carbon_monoxide : 0);
  for (size_t i = 1; i < n; ++i) mz[i - 1] = prefix[i - 1] + end;
}
/// Which of n residues (the first is 0) decides what ion i loses: r_i of b_i, r_{n-i+1} of y_i.
inline size_t cleaved_residue(IonType type, size_t i, size_t n) {
  return type == IonType::y ? n - i : i - 1;
}

struct IonOptions {
  std::vector<IonType> types = {IonType::b, IonType::y};
  int max_charge = 1;           ///< each fragment with charges 1 .. max_charge
  bool neutral_losses = false;  ///< of b and y besides
};
struct Ion {
  IonType type = IonType::b;
  int number = 0;  ///< residues in it
  int charge = 1;
  NeutralLoss loss = NeutralLoss::none;
  double mz = 0;
};
/// All theoretical fragments in the order of type, charge, number, the ion itself before its loss.
std::vector<Ion> theoretical_ions(const ResidueAlphabet& alphabet, std::span<const int32_t> ids,
                                  const IonOptions& options = {});

}  // namespace fullbore::peptide

#include "workloads/peptide/ions.h"

namespace fullbore::peptide {

std::optional<IonType> parse_ion_type(std::string_view name) {
  for (const IonType type : {IonType::b, IonType::y, IonType::a})
    if (name == ion_type_name(type)) return type;
  return {};
}

std::string_view ion_type_name(IonType type) {
  if (type == IonType::b) return "b";
  return type == IonType::y ? "y" : "a";
}

std::vector<double> prefix_masses(const ResidueAlphabet& alphabet, std::span<const int32_t> ids) {
  std::vector<double> prefix;
  prefix.reserve(ids.size());
  double sum = 0;
  for (const int32_t id : ids) {
    sum += alphabet.mass(id);
    if (alphabet.is_residue(id)) prefix.push_back(sum);
  }
  return prefix;
}

double neutral_mass(const ResidueAlphabet& alphabet, std::span<const int32_t> ids) {
  double sum = alphabet.constants().water;
  for (const int32_t id : ids) sum += alphabet.mass(id);
  return sum;
}

std::vector<Ion> theoretical_ions(const ResidueAlphabet& alphabet, std::span<const int32_t> ids,
                                  const IonOptions& options) {
  const MassConstants& constants = alphabet.constants();
  const std::vector<double> prefix = prefix_masses(alphabet, ids);
  std::vector<int32_t> residues;
  for (const int32_t id : ids)
    if (alphabet.is_residue(id)) residues.push_back(id);
  std::vector<Ion> ions;
  if (prefix.size() < 2) return ions;
  const size_t n = prefix.size();
  std::vector<double> mz(n - 1);
  for (const IonType type : options.types) {
    fragment_series(type, prefix, constants, mz.data());
    for (int charge = 1; charge <= options.max_charge; ++charge) {
      for (size_t i = 1; i < n; ++i) {
        Ion ion{type, static_cast<int>(i), charge, NeutralLoss::none,
                charged_mz(mz[i - 1], charge, constants)};
        ions.push_back(ion);
        ion.loss = alphabet.neutral_loss(residues[cleaved_residue(type, i, n)]);
        if (!options.neutral_losses || type == IonType::a || ion.loss == NeutralLoss::none)
          continue;
        ion.mz = charged_mz(mz[i - 1] - mass_of(ion.loss, constants), charge, constants);
        ions.push_back(ion);
      }
    }
  }
  return ions;
}

}  // namespace fullbore::peptide

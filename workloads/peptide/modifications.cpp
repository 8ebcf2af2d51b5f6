#include "workloads/peptide/modifications.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace fullbore::peptide {
namespace {

// Atomic masses of the specification's tables, and of phosphorus (NIST, Atomic Weights and Isotopic
// Compositions, version 4.1).
constexpr double kH = 1.00782503223;
constexpr double kC = 12;
constexpr double kN = 14.00307400443;
constexpr double kO = 15.99491461957;
constexpr double kP = 30.97376199842;

struct Known {
  std::string_view name;
  int record;
  double mass;
};
// Names, records and compositions: unimod.org.
constexpr Known kKnown[] = {
    {"Acetyl", 1, 2 * kC + 2 * kH + kO},
    {"Carbamidomethyl", 4, 2 * kC + 3 * kH + kN + kO},
    {"Carbamyl", 5, kC + kH + kN + kO},
    {"Deamidated", 7, kO - kN - kH},
    {"Phospho", 21, kH + 3 * kO + kP},
    {"Glu->pyro-Glu", 27, -2 * kH - kO},
    {"Gln->pyro-Glu", 28, -3 * kH - kN},
    {"Methyl", 34, kC + 2 * kH},
    {"Oxidation", 35, kO},
    {"Dimethyl", 36, 2 * kC + 4 * kH},
    {"Trimethyl", 37, 3 * kC + 6 * kH},
    {"Ammonia-loss", 385, -3 * kH - kN},
};
// Carbamyl and Ammonia-loss of the same N-terminus, one token of MassIVE-KB.
constexpr double kCarbamylWithoutAmmonia = kC + kO - 2 * kH;

constexpr int kGlutamineRing = 28;

constexpr double kRounding = 0.001;

bool same_letters(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

}  // namespace

std::optional<double> modification_mass(std::string_view name) {
  constexpr std::string_view kRecord = "unimod:";
  if (name.size() > kRecord.size() && same_letters(name.substr(0, kRecord.size()), kRecord)) {
    const std::string_view digits = name.substr(kRecord.size());
    int record = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), record);
    if (error != std::errc{} || end != digits.data() + digits.size()) return {};
    for (const Known& known : kKnown)
      if (known.record == record) return known.mass;
    return {};
  }
  if (name.size() > 2 && same_letters(name.substr(0, 2), "U:")) name.remove_prefix(2);
  for (const Known& known : kKnown)
    if (same_letters(known.name, name)) return known.mass;
  return {};
}

double exact_modification_mass(double difference) {
  for (const Known& known : kKnown)
    if (std::abs(known.mass - difference) <= kRounding) return known.mass;
  if (std::abs(kCarbamylWithoutAmmonia - difference) <= kRounding) return kCarbamylWithoutAmmonia;
  return difference;
}

std::optional<UnimodRecord> unimod_record(double difference, char letter, bool terminal) {
  // Q that begins a peptide closes its ring without ammonia; other residues only lose it. Both weigh the same.
  const bool closes_ring = terminal && letter == 'Q';
  for (const Known& known : kKnown) {
    if (std::abs(known.mass - difference) > kRounding) continue;
    if (known.record == kGlutamineRing && !closes_ring) continue;
    return UnimodRecord{known.record, known.name};
  }
  return {};
}

std::optional<double> parse_mass_difference(std::string_view text, bool needs_sign) {
  double sum = 0;
  if (text.empty()) return {};
  for (bool first = true; !text.empty(); first = false) {
    const bool has_sign = text[0] == '+' || text[0] == '-';
    if (!has_sign && (needs_sign || !first)) return {};
    const double sign = text[0] == '-' ? -1 : 1;
    if (has_sign) text.remove_prefix(1);
    if (text.empty() || (text[0] != '.' && std::isdigit(static_cast<unsigned char>(text[0])) == 0))
      return {};
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || !(value < 1e5)) return {};
    sum += sign * value;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return sum;
}

}  // namespace fullbore::peptide

#pragma once
#include <optional>
#include <string_view>

namespace fullbore::peptide {

/// The mass that a modification adds, in Da from atomic masses, by its name in Unimod ("Oxidation",
/// whatever the case) or by its record ("UNIMOD:35").
std::optional<double> modification_mass(std::string_view name);

/// `difference`, or the exact mass of the modification that it is the rounded mass of (to 0.001 Da).
double exact_modification_mass(double difference);

/// A record of Unimod.
struct UnimodRecord {
  int record = 0;
  std::string_view name;
};
/// The record of what adds so much to a residue, or to the N-terminus before `letter` (terminal). Nothing where Unimod
/// has none: two modifications in one.
std::optional<UnimodRecord> unimod_record(double difference, char letter, bool terminal);

/// The sum of one or several signed decimal numbers, "+43.006-17.027"; nothing if that is not what the
/// whole text is. Without `needs_sign` the first may go without.
std::optional<double> parse_mass_difference(std::string_view text, bool needs_sign = true);

}  // namespace fullbore::peptide

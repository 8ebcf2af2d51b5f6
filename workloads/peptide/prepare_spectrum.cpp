#include "workloads/peptide/prepare_spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/error.h"
#include "workloads/peptide/ions.h"

namespace fullbore::peptide {
namespace {

constexpr double kNeutron = 1.00335;          // 13C - 12C, what isotopes of a peptide differ by
constexpr double kStatedMassTolerance = 0.5;  // Da; readings differ by a proton or more

void check(const PreparationOptions& options) {
  const auto refuse = [](std::string_view field, const auto& value, std::string_view expected) {
    throw UsageError(fmt::format("spectra: {} is {}, expected {}", field, value, expected));
  };
  if (options.max_peaks < 1 || options.max_peaks > 1000000)
    refuse("max_peaks", options.max_peaks, "1 to 1000000");
  if (options.min_peaks < 0) refuse("min_peaks", options.min_peaks, "0 or more");
  if (options.min_length < 1) refuse("min_length", options.min_length, "1 or more");
  if (options.max_length < options.min_length)
    refuse("max_length", options.max_length,
           fmt::format("min_length ({}) or more", options.min_length));
  if (options.max_charge < 1) refuse("max_charge", options.max_charge, "1 or more");
  if (!(options.min_mz >= 0)) refuse("min_mz", options.min_mz, "0 or more");
  if (!(options.max_mz > options.min_mz)) refuse("max_mz", options.max_mz, "more than min_mz");
  if (!(options.min_intensity >= 0 && options.min_intensity < 1))
    refuse("min_intensity", options.min_intensity, "a share of the base peak");
  if (!(options.remove_precursor >= 0))
    refuse("remove_precursor", options.remove_precursor, "0 or more");
  if (!(options.precursor_ppm >= 0)) refuse("precursor_ppm", options.precursor_ppm, "0 or more");
  if (options.isotopes < 0) refuse("isotopes", options.isotopes, "0 or more");
}

}  // namespace

std::string_view drop_reason_name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasons> kNames = {
      "few_peaks",       "high_charge",          "no_sequence",   "malformed_sequence",
      "unknown_residue", "unknown_modification", "short_peptide", "long_peptide",
      "other_mass",      "unclear_mass",         "bad_spectrum"};
  return kNames[static_cast<size_t>(reason)];
}

std::string drop_reason_text(DropReason reason, const PreparationOptions& options) {
  switch (reason) {
    case DropReason::few_peaks: return fmt::format("fewer than {} peaks", options.min_peaks);
    case DropReason::high_charge: return fmt::format("charge above {}", options.max_charge);
    case DropReason::no_sequence: return "no sequence";
    case DropReason::malformed_sequence: return "malformed sequence";
    case DropReason::unknown_residue: return "residue that the alphabet lacks";
    case DropReason::unknown_modification: return "modification that the alphabet lacks";
    case DropReason::short_peptide:
      return fmt::format("fewer than {} residues", options.min_length);
    case DropReason::long_peptide: return fmt::format("more than {} residues", options.max_length);
    case DropReason::other_mass:
      return fmt::format("precursor mass is not the sequence's within {} ppm",
                         options.precursor_ppm);
    case DropReason::unclear_mass:
      return "MW without Parent or PrecursorMZ, and no sequence to compare";
    case DropReason::bad_spectrum: return "malformed, or no single charge";
  }
  return "";
}

std::string nothing_read_text(const PreparationCounts& counts) {
  if (counts.others == 0) return "there is no spectrum in it";
  return fmt::format("there is no spectrum of MS level 2 in it ({} of other levels)",
                     counts.others);
}

SpectrumPreparation::SpectrumPreparation(const PreparationOptions& options,
                                         const ResidueAlphabet& alphabet)
    : options_(options), alphabet_(alphabet) {
  check(options_);
  for (int32_t id = 0; id < alphabet_.size(); ++id) fixed_.push_back(id);
  for (const std::string& modification : options_.fixed_modifications) {
    const PeptideText read = alphabet_.read(modification);
    if (read.ids.size() != 1 || !alphabet_.is_residue(read.ids[0]) ||
        read.ids[0] < kFirstResidue + kResidues)
      throw UsageError(
          fmt::format("fixed modification '{}': it is none of the alphabet's modified residues{}",
                      modification, read.message.empty() ? "" : " (" + read.message + ")"));
    fixed_[static_cast<size_t>(residue_id(alphabet_.letter(read.ids[0])))] = read.ids[0];
  }
}

std::optional<DropReason> SpectrumPreparation::prepare(const Spectrum& spectrum,
                                                       PreparedSpectrum& prepared) {
  return count(judge(spectrum, prepared));
}

std::optional<DropReason> SpectrumPreparation::prepare_each(
    const Spectrum& spectrum, std::vector<PreparedSpectrum>& prepared) {
  prepared.clear();
  std::optional<DropReason> reason;
  const std::vector<int> stated = {spectrum.precursor_charge};
  for (const int charge : spectrum.charges.empty() ? stated : spectrum.charges) {
    PreparedSpectrum one;
    const std::optional<DropReason> own = judge_at(spectrum, charge, one);
    if (!own)
      prepared.push_back(std::move(one));
    else if (!reason)
      reason = own;
  }
  return count(prepared.empty() ? reason : std::nullopt);
}

std::optional<DropReason> SpectrumPreparation::count(std::optional<DropReason> reason) {
  ++counts_.read;
  ++(reason ? counts_.dropped[static_cast<size_t>(*reason)] : counts_.kept);
  return reason;
}

std::optional<DropReason> SpectrumPreparation::judge(const Spectrum& spectrum,
                                                     PreparedSpectrum& prepared) {
  prepared.ids.clear();
  if (spectrum.charges.size() < 2 && spectrum.precursor_charge > options_.max_charge)
    return DropReason::high_charge;
  if (options_.needs_sequence)
    if (const auto reason = read_sequence(spectrum, prepared)) return reason;
  return judge_at(spectrum, nearest_charge(spectrum, prepared), prepared);
}

std::optional<DropReason> SpectrumPreparation::judge_at(const Spectrum& spectrum, int charge,
                                                        PreparedSpectrum& prepared) {
  prepared.precursor_charge = charge;
  if (charge > options_.max_charge) return DropReason::high_charge;
  if (const auto reason = find_mass(spectrum, prepared)) return reason;
  if (!has_enough_peaks(spectrum, prepared)) return DropReason::few_peaks;
  return {};
}

int SpectrumPreparation::nearest_charge(const Spectrum& spectrum,
                                        const PreparedSpectrum& prepared) const {
  if (spectrum.charges.size() < 2 || prepared.ids.empty() || std::isnan(spectrum.precursor_mz))
    return spectrum.precursor_charge;
  const double expected = neutral_mass(alphabet_, prepared.ids);
  const auto error = [&](int charge) {
    return std::abs(mass_of_precursor(spectrum.precursor_mz, charge, alphabet_.constants()) -
                    expected);
  };
  return *std::ranges::min_element(spectrum.charges, {}, error);
}

std::optional<DropReason> SpectrumPreparation::read_sequence(const Spectrum& spectrum,
                                                             PreparedSpectrum& prepared) const {
  if (spectrum.sequence.empty()) return DropReason::no_sequence;
  PeptideText text = alphabet_.read(spectrum.sequence);
  switch (text.problem) {
    case PeptideText::Problem::none: break;
    case PeptideText::Problem::malformed: return DropReason::malformed_sequence;
    case PeptideText::Problem::unknown_residue: return DropReason::unknown_residue;
    case PeptideText::Problem::unknown_modification: return DropReason::unknown_modification;
  }
  int residues = 0;
  for (int32_t& id : text.ids) {
    id = fixed_[static_cast<size_t>(id)];
    residues += alphabet_.is_residue(id) ? 1 : 0;
  }
  if (residues < options_.min_length) return DropReason::short_peptide;
  if (residues > options_.max_length) return DropReason::long_peptide;
  prepared.ids = std::move(text.ids);
  return {};
}

std::optional<DropReason> SpectrumPreparation::find_mass(const Spectrum& spectrum,
                                                         PreparedSpectrum& prepared) const {
  const int charge = prepared.precursor_charge;
  const double proton = alphabet_.constants().proton;
  const double expected = prepared.ids.empty() ? 0 : neutral_mass(alphabet_, prepared.ids);
  if (!std::isnan(spectrum.precursor_mz)) {
    prepared.precursor_mass =
        mass_of_precursor(spectrum.precursor_mz, charge, alphabet_.constants());
  } else {
    if (prepared.ids.empty()) return DropReason::unclear_mass;
    // M, MH+, the mass of the charged ion, or its m/z: the reading that is nearest.
    const double stated = spectrum.stated_mass;
    double nearest = stated;
    for (const double reading :
         {stated - proton, stated - charge * proton, charge * (stated - proton)})
      if (std::abs(reading - expected) < std::abs(nearest - expected)) nearest = reading;
    if (std::abs(nearest - expected) > kStatedMassTolerance) return DropReason::other_mass;
    // Some writers round to a tenth or average isotopes: the sequence knows better.
    prepared.precursor_mass = expected;
    return {};
  }
  if (!(prepared.precursor_mass > 0)) return DropReason::unclear_mass;
  if (prepared.ids.empty() || options_.precursor_ppm == 0) return {};
  for (int isotope = 0; isotope <= options_.isotopes; ++isotope)
    if (std::abs(prepared.precursor_mass - isotope * kNeutron - expected) <=
        options_.precursor_ppm * 1e-6 * expected)
      return {};
  return DropReason::other_mass;
}

bool SpectrumPreparation::has_enough_peaks(const Spectrum& spectrum, PreparedSpectrum& prepared) {
  const auto is_in_reach = [&](double mz) {
    return mz >= options_.min_mz && mz <= options_.max_mz &&
           !(options_.remove_precursor > 0 &&
             std::abs(mz - spectrum.precursor_mz) <= options_.remove_precursor);
  };
  float most = 0;
  for (size_t i = 0; i < spectrum.mz.size(); ++i)
    if (is_in_reach(spectrum.mz[i])) most = std::max(most, spectrum.intensity[i]);
  const float least = std::max(most * static_cast<float>(options_.min_intensity),
                               std::numeric_limits<float>::min());
  prepared.peaks.clear();
  for (size_t i = 0; i < spectrum.mz.size(); ++i)
    if (is_in_reach(spectrum.mz[i]) && spectrum.intensity[i] >= least)
      prepared.peaks.push_back(
          pack_peak(static_cast<float>(spectrum.mz[i]), spectrum.intensity[i] / most));
  if (prepared.peaks.empty() || prepared.peaks.size() < static_cast<size_t>(options_.min_peaks))
    return false;
  const auto keep = static_cast<size_t>(options_.max_peaks);
  if (prepared.peaks.size() > keep) {
    const auto is_stronger = [](uint64_t a, uint64_t b) {
      const float x = peak_intensity(a);
      const float y = peak_intensity(b);
      return x != y ? x > y : a < b;
    };
    std::nth_element(prepared.peaks.begin(), prepared.peaks.begin() + options_.max_peaks - 1,
                     prepared.peaks.end(), is_stronger);
    prepared.peaks.resize(keep);
  }
  std::sort(prepared.peaks.begin(), prepared.peaks.end());
  return true;
}

}  // namespace fullbore::peptide

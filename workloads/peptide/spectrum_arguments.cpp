#include "workloads/peptide/spectrum_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "workloads/peptide/peptide_keys.h"

namespace fullbore {

using namespace peptide;  // NOLINT: the words of these commands

void add_spectrum_arguments(Command command, SpectrumArguments& arguments) {
  command
      .add_option("--default-charge", arguments.default_charge,
                  "Of spectra without a charge; 0: as --on-bad-spectrum says")
      .between(0, 100);
  command
      .add_option("--on-bad-spectrum", arguments.on_bad,
                  "A spectrum that is malformed or has no single charge: fail, an error; skip, "
                  "left out and "
                  "listed; try-charges, as skip, but with each charge that it may have tried")
      .one_of({std::begin(kBadSpectrumNames), std::end(kBadSpectrumNames)})
      .shows_default();
  command.add_option(
      "--left-out", arguments.left_out,
      "List of the spectra that were left out, with reasons; by default beside the output");
}

void check_spectrum_overrides(const std::vector<std::string>& overrides) {
  const std::vector<std::string> known = {"data.default_charge", "data.min_peaks"};
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (std::ranges::find(known, key) == known.end())
      throw UsageError(fmt::format("'{}' cannot be set for a trained model; {} can.{}", text,
                                   fmt::join(known, " and "), did_you_mean(key, known)));
  }
}

SpectrumReadOptions reading_options(const SpectrumArguments& arguments, const Config& config) {
  SpectrumReadOptions options;
  options.default_charge = arguments.default_charge > 0
                               ? arguments.default_charge
                               : static_cast<int>(peptide_keys(config).data.default_charge);
  options.on_bad = *parse_bad_spectrum(arguments.on_bad);
  return options;
}

std::vector<std::string> reading_notes(const PreparationCounts& counts,
                                       const PreparationOptions& options) {
  std::vector<std::string> notes;
  if (counts.profiles > 0)
    notes.push_back(fmt::format("{} profile spectra were centroided", counts.profiles));
  if (counts.ambiguous > 0)
    notes.push_back(fmt::format("{} spectra have no single charge: {}", counts.ambiguous,
                                options.needs_sequence
                                    ? "the one of their sequence's mass was taken"
                                    : "the one of the best score was taken"));
  return notes;
}

}  // namespace fullbore

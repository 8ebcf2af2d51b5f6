#include "models/peptide/convert_spectra.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/peptide/spectrum_cache.h"

namespace fullbore::peptide {
namespace {

constexpr uint64_t kBetweenProgress = 4096;

std::string description_of(const std::vector<std::string>& paths, const PreparationOptions& options,
                           const PreparationCounts& counts) {
  nlohmann::ordered_json dropped;
  for (size_t reason = 0; reason < kDropReasons; ++reason)
    dropped[std::string(drop_reason_name(static_cast<DropReason>(reason)))] =
        counts.dropped[reason];
  nlohmann::ordered_json json = {{"sources", paths},
                                 {"read", counts.read},
                                 {"kept", counts.kept},
                                 {"dropped", dropped},
                                 {"preparation",
                                  {{"max_peaks", options.max_peaks},
                                   {"min_peaks", options.min_peaks},
                                   {"min_length", options.min_length},
                                   {"max_length", options.max_length},
                                   {"max_charge", options.max_charge},
                                   {"min_mz", options.min_mz},
                                   {"min_intensity", options.min_intensity},
                                   {"remove_precursor", options.remove_precursor},
                                   {"precursor_ppm", options.precursor_ppm},
                                   {"isotopes", options.isotopes},
                                   {"fixed_modifications", options.fixed_modifications}}}};
  if (options.max_mz < std::numeric_limits<double>::infinity())
    json["preparation"]["max_mz"] = options.max_mz;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Result<PreparationCounts> convert_spectra(const std::vector<std::string>& paths,
                                          const std::string& cache, const ResidueAlphabet& alphabet,
                                          const ConvertOptions& options) {
  PreparationOptions preparing = options.preparation;
  preparing.needs_sequence = true;
  SpectrumPreparation preparation(preparing, alphabet);
  Result<SpectrumCacheWriter> writer = SpectrumCacheWriter::create(cache, alphabet);
  if (!writer.ok()) return Failure{writer.error()};
  Spectrum spectrum;
  PreparedSpectrum prepared;
  for (const std::string& path : paths) {
    const auto reader = open_spectra(path, options.reading);
    if (!reader.ok()) return Failure{reader.error()};
    for (;;) {
      const Result<bool> more = reader.value()->next(spectrum);
      if (!more.ok()) return Failure{more.error()};
      if (!more.value()) break;
      const bool is_dropped = preparation.prepare(spectrum, prepared).has_value();
      if (options.progress && preparation.counts().read % kBetweenProgress == 0)
        options.progress(preparation.counts().read);
      if (is_dropped) continue;
      if (const Status s = writer.value().append(prepared); !s.ok()) return Failure{s.error()};
    }
  }
  const PreparationCounts& counts = preparation.counts();
  if (counts.kept == 0) {
    std::string reasons;
    for (size_t i = 0; i < kDropReasons; ++i)
      if (counts.dropped[i] > 0)
        reasons += fmt::format("{} {}: {}", reasons.empty() ? ":" : ",", counts.dropped[i],
                               drop_reason_text(static_cast<DropReason>(i), preparing));
    return Failure{fmt::format(
        "none of the {} spectra of {}{} is of use{}", counts.read, paths.front(),
        paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : "", reasons)};
  }
  const Status committed =
      writer.value().commit(description_of(paths, options.preparation, counts));
  if (!committed.ok()) return Failure{committed.error()};
  return counts;
}

}  // namespace fullbore::peptide

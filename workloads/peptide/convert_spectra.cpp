#include "workloads/peptide/convert_spectra.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "workloads/peptide/left_out.h"
#include "workloads/peptide/spectrum_cache.h"

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

Failure none_of_use(const std::vector<std::string>& paths, const PreparationCounts& counts,
                    const PreparationOptions& options, const LeftOutList& left_out) {
  const std::string more =
      paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : std::string();
  if (counts.read == 0)
    return Failure{fmt::format("{}{}: {}", paths.front(), more, nothing_read_text(counts))};
  std::string reasons;
  for (size_t i = 0; i < kDropReasons; ++i)
    if (counts.dropped[i] > 0)
      reasons += fmt::format("{} {}: {}", reasons.empty() ? ":" : ",", counts.dropped[i],
                             drop_reason_text(static_cast<DropReason>(i), options));
  if (!left_out.first_bad().empty()) reasons += fmt::format(" ({})", left_out.first_bad());
  return Failure{fmt::format("none of the {} spectra of {}{} is of use{}", counts.read,
                             paths.front(), more, reasons)};
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
  LeftOutList left_out(options.left_out_path);
  Spectrum spectrum;
  PreparedSpectrum prepared;
  PreparationCounts counts;
  for (const std::string& path : paths) {
    SpectrumReadOptions reading = options.reading;
    reading.left_out = [&](const Spectrum& bad) {
      preparation.add_bad();
      left_out.add(path, bad, bad.problem);
    };
    const auto reader = open_spectra(path, reading);
    if (!reader.ok()) return Failure{reader.error()};
    for (;;) {
      const Result<bool> more = reader.value()->next(spectrum);
      if (!more.ok()) return Failure{more.error()};
      if (!more.value()) break;
      const std::optional<DropReason> dropped = preparation.prepare(spectrum, prepared);
      if (options.progress && preparation.counts().read % kBetweenProgress == 0)
        options.progress(preparation.counts().read);
      if (dropped)
        left_out.add(path, spectrum, drop_reason_text(*dropped, preparing));
      else if (const Status s = writer.value().append(prepared); !s.ok())
        return Failure{s.error()};
    }
    counts.profiles += reader.value()->counts().profiles;
    counts.ambiguous += reader.value()->counts().ambiguous;
    counts.others += reader.value()->counts().others;
  }
  counts.read = preparation.counts().read;
  counts.kept = preparation.counts().kept;
  counts.dropped = preparation.counts().dropped;
  if (counts.kept == 0) return none_of_use(paths, counts, preparing, left_out);
  const Status committed =
      writer.value().commit(description_of(paths, options.preparation, counts));
  if (!committed.ok()) return Failure{committed.error()};
  if (const Status listed = left_out.commit(); !listed.ok()) return Failure{listed.error()};
  return counts;
}

}  // namespace fullbore::peptide

#include "workloads/peptide/peptide_spectra.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "fullbore/app/job_options.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/input_file.h"
#include "workloads/peptide/convert_spectra.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/match.h"
#include "workloads/peptide/peptide_job.h"
#include "workloads/peptide/peptide_keys.h"
#include "workloads/peptide/spectrum_arguments.h"

namespace fullbore {
namespace {

using namespace peptide;

uint64_t hash_of_file(const std::string& path) {
  const InputFile file = InputFile::open(path).take_or_throw();
  std::vector<char> block(size_t{1} << 20);
  uint64_t hash = 0;
  for (uint64_t at = 0;;) {
    const size_t count = file.read(at, block.data(), block.size()).take_or_throw();
    if (count == 0) return hash;
    hash = hash_bytes(block.data(), count, hash);
    at += count;
  }
}

SpectrumReadOptions reading_options(const Config& config) {
  SpectrumReadOptions options;
  options.default_charge = static_cast<int>(peptide_keys(config).data.default_charge);
  options.on_bad = *parse_bad_spectrum(peptide_keys(config).data.on_bad_spectrum);
  return options;
}

std::string settings_text(const Config& config) {
  const PeptideKeys::Data& data = peptide_keys(config).data;
  return fmt::format("{} {} {} {} {} {} {} {} {}", peptide_keys(config).model.max_peaks,
                     peptide_keys(config).model.max_seq_len, data.min_peaks, data.min_length,
                     data.start_and_end, data.default_charge, data.on_bad_spectrum, data.masses,
                     fmt::join(data.modifications, " "));
}

PredictedSpectrum decode(const Spectrum& spectrum, const PreparedSpectrum& prepared,
                         const PredictedSlots& slots, const ResidueAlphabet& alphabet,
                         double precursor_ppm) {
  PredictedSpectrum result{spectrum, prepared.precursor_charge, {}, {}, false, 0};
  const auto last = slots.answers.last(slots.probabilities.size());
  for (size_t s = 0; s < last.size() && last[s] != kEnd; ++s) {
    if (last[s] < kFirstResidue) continue;
    result.ids.push_back(last[s]);
    result.scores.push_back(double{slots.probabilities[s]});
    result.score += double{slots.probabilities[s]};
  }
  if (!result.ids.empty()) result.score /= static_cast<double>(result.ids.size());
  result.is_possible =
      precursor_ppm <= 0 ||
      (!result.ids.empty() && is_within({.ppm = precursor_ppm}, neutral_mass(alphabet, result.ids),
                                        prepared.precursor_mass));
  if (!result.is_possible) result.score -= 1;
  return result;
}

// Spectra that are read before they are predicted, so that those of about as many peaks go together.
constexpr int64_t kPrefetchedSpectra = 4096;

}  // namespace

PreparationOptions peptide_preparation(const Config& config, bool needs_sequence) {
  const int64_t marks = peptide_keys(config).data.start_and_end ? 2 : 0;
  PreparationOptions options;
  options.max_peaks = peptide_keys(config).model.max_peaks;
  options.min_peaks = peptide_keys(config).data.min_peaks;
  options.min_length = static_cast<int>(peptide_keys(config).data.min_length);
  options.max_length = static_cast<int>(peptide_keys(config).model.max_seq_len - marks);
  options.needs_sequence = needs_sequence;
  return options;
}

std::shared_ptr<const SpectrumCache> open_measured_spectra(const Config& config, Console& console) {
  std::string path = config.data.path;
  const ResidueAlphabet alphabet = peptide_alphabet(config);
  if (!is_spectrum_cache(path)) {
    const std::string folder = data_cache_folder(config, "spectra");
    console.live(fmt::format("reading {}", path));
    const uint64_t hash = hash_text(settings_text(config), hash_of_file(path));
    const std::string cached = fmt::format("{}/{}.spectra", folder, hash_hex(hash));
    if (!std::filesystem::exists(cached) || !SpectrumCache::open(cached).ok()) {
      ConvertOptions options{.reading = reading_options(config),
                             .preparation = peptide_preparation(config, true)};
      options.left_out_path = cached + ".left_out.tsv";
      options.progress = [&](uint64_t spectra) {
        console.live(fmt::format("converting {}: {} spectra", path, spectra));
      };
      const PreparationCounts counts =
          convert_spectra({path}, cached, alphabet, options).take_or_throw();
      console.clear();
      const std::string dropped = dropped_text(counts, options.preparation);
      if (!dropped.empty())
        console.line(fmt::format("spectra  {}; listed in {}", dropped, options.left_out_path));
      for (const std::string& note : reading_notes(counts, options.preparation))
        console.line(fmt::format("spectra  {}", note));
    }
    path = cached;
  }
  console.clear();
  auto cache = std::make_shared<SpectrumCache>(SpectrumCache::open(path).take_or_throw());
  cache->check_alphabet(alphabet).take_or_throw();
  return cache;
}

std::string dropped_text(const PreparationCounts& counts, const PreparationOptions& options) {
  if (counts.kept == counts.read) return "";
  std::string reasons;
  for (size_t i = 0; i < kDropReasons; ++i)
    if (counts.dropped[i] > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", counts.dropped[i],
                             drop_reason_text(static_cast<DropReason>(i), options));
  return fmt::format("{} of {} left out: {}", counts.read - counts.kept, counts.read, reasons);
}

PreparationCounts predict_file(TrainedPeptideModel& model, const std::string& path,
                               const PredictOptions& options, Console& console,
                               const std::function<void(const PredictedSpectrum&)>& take) {
  SpectrumPreparation preparation(peptide_preparation(model.config, false), model.alphabet);
  LeftOutList unlisted;
  LeftOutList& left_out = options.left_out != nullptr ? *options.left_out : unlisted;
  SpectrumReadOptions reading = options.reading;
  reading.left_out = [&](const Spectrum& bad) {
    preparation.add_bad();
    left_out.add(path, bad, bad.problem);
  };
  const auto reader = open_spectra(path, reading).take_or_throw();
  std::optional<PeptidePredictor> predictor;
  const auto prefetched = static_cast<size_t>(
      options.batch * std::clamp<int64_t>(kPrefetchedSpectra / options.batch, 1, 16));
  std::vector<Spectrum> spectra(prefetched);
  std::vector<PreparedSpectrum> prepared;  // of all spectra, each for every charge that it may have
  std::vector<size_t> spectrum_of;         // each of `prepared`
  std::vector<PreparedSpectrum> of_charges;
  size_t count = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto flush = [&] {
    if (!predictor) {
      console.live("compiling");
      predictor.emplace(model, options.batch);
      if (options.opened) options.opened(reader->terms());
    }
    std::optional<PredictedSpectrum> best;
    predictor->predict(prepared, [&](size_t i, const PredictedSlots& slots) {
      PredictedSpectrum found = decode(spectra[spectrum_of[i]], prepared[i], slots, model.alphabet,
                                       options.precursor_ppm);
      if (!best || found.score > best->score) best.emplace(std::move(found));
      if (i + 1 < prepared.size() && spectrum_of[i + 1] == spectrum_of[i]) return;
      take(*best);
      best.reset();
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    console.live(fmt::format("{} spectra, {:.0f} per second", preparation.counts().kept,
                             static_cast<double>(preparation.counts().kept) / seconds.count()));
    count = 0;
    prepared.clear();
    spectrum_of.clear();
  };
  while (reader->next(spectra[count]).take_or_throw()) {
    if (const auto reason = preparation.prepare_each(spectra[count], of_charges)) {
      left_out.add(path, spectra[count], drop_reason_text(*reason, preparation.options()));
      continue;
    }
    for (PreparedSpectrum& each : of_charges) {
      prepared.push_back(std::move(each));
      spectrum_of.push_back(count);
    }
    if (++count == spectra.size()) flush();
  }
  if (count > 0) flush();
  console.clear();
  PreparationCounts counts = preparation.counts();
  counts.profiles = reader->counts().profiles;
  counts.ambiguous = reader->counts().ambiguous;
  counts.others = reader->counts().others;
  if (counts.read == 0) throw DataError(fmt::format("{}: {}", path, nothing_read_text(counts)));
  if (reader->counts().bad == counts.read)
    throw DataError(fmt::format("none of the {} spectra of {} can be read; the first: {}",
                                counts.read, path, left_out.first_bad()));
  return counts;
}

}  // namespace fullbore

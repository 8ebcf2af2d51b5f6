#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/version.h"
#include "fullbore/base/error.h"
#include "workloads/peptide/peptide_commands.h"
#include "workloads/peptide/peptide_spectra.h"
#include "workloads/peptide/predictions.h"
#include "workloads/peptide/spectrum_arguments.h"

namespace fullbore {
namespace {

using namespace peptide;

struct PredictArguments : SpectrumArguments {
  std::string model;
  std::string spectra;
  std::vector<std::string> overrides;
  std::string output;
  int64_t batch = 64;
  double precursor_ppm = 50;
  bool only_within = false;
  bool force = false;
};

PredictionFormat format_of(const std::string& path) {
  const std::optional<PredictionFormat> format = prediction_format(path);
  if (!format)
    throw UsageError(fmt::format(
        "predict: --output is '{}'; a name that ends in .mztab or .csv was expected", path));
  return *format;
}

/// "2+ 5, 3+ 2": what was made of spectra without a single charge.
std::string charges_text(const std::map<int, int64_t>& chosen) {
  std::string text;
  for (const auto& [charge, spectra] : chosen)
    text += fmt::format("{}{}+ {}", text.empty() ? "" : ", ", charge, spectra);
  return text;
}

ExitCode run_predict(const PredictArguments& arguments) {
  const PredictionFormat format = format_of(arguments.output);
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  const std::string listed =
      arguments.left_out.empty() ? arguments.output + ".left_out.tsv" : arguments.left_out;
  refuse_existing(listed, arguments.force);
  check_spectrum_overrides(arguments.overrides);
  TrainedPeptideModel model = load_peptide_model(arguments.model, arguments.overrides);
  Console console;
  PredictionWriter writer =
      PredictionWriter::create(
          arguments.output, format, model.alphabet,
          {.spectra_path = arguments.spectra,
           .version = version(),
           .settings = {{"checkpoint", model.path}, {"step", fmt::format("{}", model.step)}}})
          .take_or_throw();
  LeftOutList left_out(listed);
  int64_t outside = 0;
  std::map<int, int64_t> chosen;
  const auto start = std::chrono::steady_clock::now();
  const PreparationCounts counts =
      predict_file(model, arguments.spectra,
                   {.batch = arguments.batch,
                    .precursor_ppm = arguments.precursor_ppm,
                    .reading = reading_options(arguments, model.config),
                    .left_out = &left_out,
                    .opened = [&](const SpectrumFileTerms& terms) { writer.describe_run(terms); }},
                   console, [&](const PredictedSpectrum& found) {
                     if (found.spectrum.charges.size() > 1) ++chosen[found.charge];
                     outside += !found.is_possible;
                     if (!found.is_possible && arguments.only_within) return;
                     writer
                         .write({.spectrum = spectrum_reference(found.spectrum),
                                 .title = found.spectrum.title,
                                 .ids = found.ids,
                                 .score = found.score,
                                 .residue_scores = found.scores,
                                 .precursor_charge = found.charge,
                                 .precursor_mz = found.spectrum.precursor_mz,
                                 .retention_seconds = found.spectrum.retention_seconds,
                                 .tried_charges = found.spectrum.charges})
                         .take_or_throw();
                   });
  writer.commit().take_or_throw();
  left_out.commit().take_or_throw();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  console.line(fmt::format("{}: {} predictions of {} spectra, {:.0f} per second", arguments.output,
                           writer.written(), counts.read,
                           static_cast<double>(counts.kept) / seconds.count()));
  const PreparationOptions preparation = peptide_preparation(model.config, false);
  const std::string dropped = dropped_text(counts, preparation);
  if (!dropped.empty()) console.line(fmt::format("{}; listed in {}", dropped, listed));
  if (!left_out.first_bad().empty())
    console.line(fmt::format("the first bad one: {}", left_out.first_bad()));
  for (const std::string& note : reading_notes(counts, preparation)) console.line(note);
  if (!chosen.empty()) console.line(fmt::format("charges taken: {}", charges_text(chosen)));
  if (arguments.precursor_ppm > 0)
    console.line(fmt::format("{} not within {:g} ppm of their precursor{}", outside,
                             arguments.precursor_ppm,
                             arguments.only_within ? ", left out" : ": their scores are below 0"));
  return ExitCode::kOk;
}

}  // namespace

void add_predict_command(Command root) {
  Command command = root.add_subcommand("predict", "Read peptides off tandem mass spectra");
  auto arguments = std::make_shared<PredictArguments>();
  command
      .add_option("RUN_OR_CHECKPOINT", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint of model.name=peptide")
      .required();
  command.add_option("SPECTRA", arguments->spectra, "MGF, MSP, mzML or a table; gzipped or not")
      .required();
  command.add_option("key=value", arguments->overrides, "data.default_charge or data.min_peaks");
  command.add_option("-o,--output", arguments->output, "File to write: *.mztab or *.csv")
      .required();
  command.add_option("--batch", arguments->batch, "Spectra at a time")
      .between(int64_t{1}, int64_t{4096})
      .shows_default();
  command
      .add_option("--precursor-ppm", arguments->precursor_ppm,
                  "A peptide further from its precursor's mass, or that of its next isotope, is "
                  "impossible: 1 is taken off its score; 0: not looked at")
      .between(0.0, 1e6)
      .shows_default();
  command.add_flag("--only-within", arguments->only_within, "Leave impossible peptides out");
  add_spectrum_arguments(command, *arguments);
  command.add_flag("--force", arguments->force, "Replace files that are there");
  command.footer(R"(
Each peptide comes with a confidence for every residue (its probability) and their mean. Spectra that the
model cannot read (fewer peaks than data.min_peaks, charges above 6) and bad ones are counted, left out,
and listed in OUTPUT.left_out.tsv. A spectrum without a charge is tried at 2 to 4, one with several at
each of them; the best score is kept, and tells its charge. Profile spectra are centroided.

Spectra are named by the file's own ids: mzML's nativeID, else index= from 0.

Example:
  fullbore predict runs/peptide-1 spectra.mgf -o peptides.mztab
  fullbore predict runs/peptide-1 run.mzML.gz -o peptides.csv --only-within
  fullbore predict runs/peptide-1 spectra.mgf -o peptides.mztab --default-charge 2 --on-bad-spectrum skip)");
  command.runs([arguments] { return run_predict(*arguments); });
}

}  // namespace fullbore

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>

#include "apps/commands.h"
#include "apps/peptide_spectra.h"
#include "apps/version.h"
#include "fullbore/base/error.h"
#include "models/peptide/ions.h"
#include "models/peptide/match.h"
#include "models/peptide/predictions.h"

namespace fullbore {
namespace {

using namespace peptide;

struct PredictArguments {
  std::string model;
  std::string spectra;
  std::string output;
  int64_t batch = 64;
  double tolerance_ppm = 50;
  bool only_within = false;
};

PredictionFormat format_of(const std::string& path) {
  const std::optional<PredictionFormat> format = prediction_format(path);
  if (!format)
    throw UsageError(fmt::format(
        "predict: --output is '{}'; a name that ends in .mztab or .csv was expected", path));
  return *format;
}

ExitCode run_predict(const PredictArguments& arguments) {
  const PredictionFormat format = format_of(arguments.output);
  TrainedPeptideModel model = load_peptide_model(arguments.model);
  Console console;
  PredictionWriter writer =
      PredictionWriter::create(
          arguments.output, format, model.alphabet,
          {.spectra_path = arguments.spectra,
           .version = version(),
           .settings = {{"checkpoint", model.path}, {"step", fmt::format("{}", model.step)}}})
          .take_or_throw();
  const PrecursorTolerance tolerance{.ppm = arguments.tolerance_ppm};
  int64_t outside = 0;
  const auto start = std::chrono::steady_clock::now();
  const PreparationCounts counts = predict_file(
      model, arguments.spectra, arguments.batch, /*needs_sequence=*/false, console,
      [&](const PredictedSpectrum& found) {
        const bool within =
            arguments.tolerance_ppm <= 0 ||
            (!found.ids.empty() && is_within(tolerance, neutral_mass(model.alphabet, found.ids),
                                             found.prepared.precursor_mass));
        outside += !within;
        if (!within && arguments.only_within) return;
        const std::string name = fmt::format("index={}", found.index);
        writer
            .write({.spectrum = name,
                    .title = found.spectrum.title,
                    .ids = found.ids,
                    // As Casanovo has it: what cannot be is below all that can.
                    .score = within ? found.score : found.score - 1,
                    .residue_scores = found.scores,
                    .precursor_charge = found.spectrum.precursor_charge,
                    .precursor_mz = found.spectrum.precursor_mz})
            .take_or_throw();
      });
  writer.commit().take_or_throw();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  console.line(fmt::format("{}: {} predictions of {} spectra, {:.0f} per second", arguments.output,
                           writer.written(), counts.read,
                           static_cast<double>(counts.kept) / seconds.count()));
  const std::string dropped = dropped_text(counts, peptide_preparation(model.config, false));
  if (!dropped.empty()) console.line(dropped);
  if (arguments.tolerance_ppm > 0)
    console.line(fmt::format("{} not within {:g} ppm of their precursor{}", outside,
                             arguments.tolerance_ppm,
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
  command.add_option("-o,--output", arguments->output, "File to write: *.mztab or *.csv")
      .required();
  command.add_option("--batch", arguments->batch, "Spectra at a time")
      .between(int64_t{1}, int64_t{4096})
      .shows_default();
  command
      .add_option("--precursor-ppm", arguments->tolerance_ppm,
                  "A peptide further from its precursor's mass, or that of its next isotope, is "
                  "impossible: 1 is taken off its score; 0: not looked at")
      .between(0.0, 1e6)
      .shows_default();
  command.add_flag("--only-within", arguments->only_within, "Leave impossible peptides out");
  command.footer(R"(
Each peptide comes with a confidence for every residue (its probability) and their mean. Spectra that the
model cannot read (fewer peaks than data.min_peaks, charges above 6) are counted and left out.

Example:
  fullbore predict runs/peptide-1 spectra.mgf -o peptides.mztab
  fullbore predict runs/peptide-1 run.mzML.gz -o peptides.csv --only-within)");
  command.runs([arguments] { return run_predict(*arguments); });
}

}  // namespace fullbore

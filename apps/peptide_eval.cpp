#include "apps/peptide_eval.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/peptide_job.h"
#include "apps/peptide_spectra.h"
#include "apps/workload.h"
#include "fullbore/train/evaluator.h"
#include "models/peptide/assign_predictions.h"
#include "models/peptide/paired.h"
#include "models/peptide/peptide_scores.h"
#include "models/peptide/predictions.h"

namespace fullbore {
namespace {

using namespace peptide;
using Json = nlohmann::ordered_json;

constexpr int64_t kBatch = 64;

bool is_prediction_file(const std::string& path) {
  return prediction_format(path).has_value() && std::filesystem::is_regular_file(path);
}

void print(const Json& json) {
  print_output("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

/// An annotated spectrum that can be scored.
struct Annotated {
  SpectrumName name;
  std::vector<int32_t> ids;
  double precursor_mass = 0;
};

/// What every subject is measured on: the annotated spectra of a file that a model could learn from.
std::vector<std::optional<Annotated>> annotated_spectra(const std::string& path,
                                                        const Config& config,
                                                        const ResidueAlphabet& alphabet) {
  const auto reader =
      open_spectra(path, {.default_charge = static_cast<int>(config.peptide.data.default_charge)})
          .take_or_throw();
  PreparationOptions options = peptide_preparation(config, true);
  // Other tools read what this one does not: only the sequence matters here.
  options.min_peaks = 1;
  options.min_length = 1;
  options.max_length = 1000;
  options.max_charge = kMostCharge;
  options.precursor_ppm = 0;
  SpectrumPreparation preparation(options, alphabet);
  std::vector<std::optional<Annotated>> all;
  Spectrum spectrum;
  PreparedSpectrum prepared;
  while (reader->next(spectrum).take_or_throw()) {
    const bool dropped = preparation.prepare(spectrum, prepared).has_value();
    all.push_back(
        dropped ? std::nullopt
                : std::optional(Annotated{
                      {spectrum.scan, spectrum.title}, prepared.ids, prepared.precursor_mass}));
  }
  if (preparation.counts().kept == 0)
    throw DataError(fmt::format("{}: no annotated spectrum: {}", path,
                                dropped_text(preparation.counts(), options)));
  return all;
}

/// One subject's answers to the spectra of a file.
struct Answered {
  std::vector<std::vector<int32_t>> ids;  ///< by spectrum; empty: none
  std::vector<double> scores;
  std::string about;
};

Answered from_file(const std::string& path, const std::vector<std::optional<Annotated>>& spectra,
                   const ResidueAlphabet& alphabet) {
  const PredictionFile file = read_predictions(path).take_or_throw();
  std::vector<SpectrumName> names;
  for (const std::optional<Annotated>& spectrum : spectra)
    names.push_back(spectrum ? spectrum->name : SpectrumName{});
  const AssignedPredictions assigned = assign_predictions(file, names);
  Answered answers{{}, std::vector<double>(spectra.size(), kNoValue), ""};
  answers.ids.resize(spectra.size());
  size_t unknown = 0;
  for (size_t i = 0; i < spectra.size(); ++i) {
    const Prediction* const prediction = assigned.of_spectrum[i];
    if (prediction == nullptr || prediction->sequence.empty()) continue;
    Result<std::vector<int32_t>> ids = prediction_ids(file, *prediction, alphabet);
    if (!ids.ok() && spectra[i]) ++unknown;
    if (!ids.ok()) continue;
    answers.ids[i] = std::move(ids.value());
    answers.scores[i] = prediction->score;
  }
  answers.about =
      fmt::format("{}: {} predictions{}{}", path, file.predictions.size(),
                  assigned.unused > 0 ? fmt::format(", {} of other spectra", assigned.unused) : "",
                  unknown > 0 ? fmt::format(", {} with residues that are not known "
                                            "here (data.modifications)",
                                            unknown)
                              : "");
  return answers;
}

Answered from_model(TrainedPeptideModel& model, const std::string& data, size_t spectra,
                    Console& console) {
  Answered answers{{}, std::vector<double>(spectra, kNoValue), ""};
  answers.ids.resize(spectra);
  const PreparationCounts counts = predict_file(model, data, kBatch, /*needs_sequence=*/false,
                                                console, [&](const PredictedSpectrum& found) {
                                                  answers.ids[found.index] = found.ids;
                                                  answers.scores[found.index] = found.score;
                                                });
  answers.about = fmt::format("{} (step {}): {} of {} spectra read", model.path, model.step,
                              counts.kept, counts.read);
  return answers;
}

PeptideScorer score(const Answered& answers, const std::vector<std::optional<Annotated>>& spectra,
                    const ResidueAlphabet& alphabet) {
  PeptideScorer scorer(alphabet);
  for (size_t i = 0; i < spectra.size(); ++i)
    if (spectra[i])
      scorer.add({answers.ids[i], spectra[i]->ids, answers.scores[i], spectra[i]->precursor_mass});
  return scorer;
}

/// The held-out part of the run itself: loss and metrics as training has them.
ExitCode eval_held_out(TrainedPeptideModel& model, bool json) {
  Console console;
  Workload workload = open_workload(model.config, console);
  const TrainingJob job = workload.job(model.config);
  if (!job.validation)
    throw UsageError("eval: the run held nothing out; name annotated spectra by --data FILE");
  Team team(worker_count(model.config));
  Evaluator evaluator(job.loss, *job.validation, model.state, team, compile_options(model.config));
  Progress progress;
  const Evaluation result = *evaluator.evaluate([&](uint64_t done) {
    progress.phase = fmt::format("evaluating {}/{}", done, evaluator.batches());
    console.live(progress);
    return true;
  });
  console.clear();
  if (json) {
    Json all = {{"checkpoint", model.path}, {"step", model.step}, {"loss", result.loss}};
    for (const auto& [name, value] : result.metrics) all[name] = value;
    print(all);
    return ExitCode::kOk;
  }
  print_output("checkpoint            {} (step {})\n", model.path, model.step);
  print_output("held out              {}, {} batches\n", workload.batches, evaluator.batches());
  print_output("{:<22}{:.6f}\n", "loss", result.loss);
  for (const auto& [name, value] : result.metrics) print_output("{:<22}{:.6f}\n", name, value);
  return ExitCode::kOk;
}

/// A subject, and what of it the reading of the data follows.
class Subject {
 public:
  explicit Subject(const std::string& path) : path_(path) {
    if (!is_prediction_file(path)) model_.emplace(load_peptide_model(path));
  }
  TrainedPeptideModel* model() { return model_ ? &*model_ : nullptr; }
  Answered answer(const std::string& data, const std::vector<std::optional<Annotated>>& spectra,
                  const ResidueAlphabet& alphabet, Console& console) {
    return model_ ? from_model(*model_, data, spectra.size(), console)
                  : from_file(path_, spectra, alphabet);
  }

 private:
  std::string path_;
  std::optional<TrainedPeptideModel> model_;
};

}  // namespace

bool is_peptide_subject(const std::string& subject) {
  if (is_prediction_file(subject)) return true;
  const OpenedCheckpoint checkpoint = open_checkpoint(subject);
  return parse_config(checkpoint.record.config, subject).model.name == "peptide";
}

ExitCode eval_peptides(const PeptideEvalArguments& arguments) {
  Subject subject(arguments.subject);
  std::optional<Subject> against;
  if (!arguments.against.empty()) against.emplace(arguments.against);
  if (arguments.data.empty()) {
    if (against || !subject.model())
      throw UsageError(
          "eval: name the annotated spectra that the predictions are of by --data FILE");
    return eval_held_out(*subject.model(), arguments.json);
  }
  TrainedPeptideModel* const model =
      subject.model() ? subject.model() : (against ? against->model() : nullptr);
  // Without a model every modification that the field knows is read.
  Config config = model ? model->config : Config();
  if (!model) config.peptide.data.modifications = {"massivekb"};
  const ResidueAlphabet alphabet = peptide_alphabet(config);
  const std::vector<std::optional<Annotated>> spectra =
      annotated_spectra(arguments.data, config, alphabet);
  Console console;
  const Answered first = subject.answer(arguments.data, spectra, alphabet, console);
  const PeptideScorer scorer = score(first, spectra, alphabet);
  if (!against) {
    if (arguments.json) {
      Json json = {{"subject", arguments.subject}, {"data", arguments.data}};
      json.update(to_json(scorer.report()));
      print(json);
    } else {
      print_output("{}\n{}", first.about, text(scorer.report()));
    }
    return ExitCode::kOk;
  }
  const Answered second = against->answer(arguments.data, spectra, alphabet, console);
  const PeptideScorer other = score(second, spectra, alphabet);
  const PairedReport report = compare_peptides(scorer.outcomes(), other.outcomes());
  if (arguments.json) {
    Json json = {{"a", arguments.subject}, {"b", arguments.against}, {"data", arguments.data}};
    json.update(to_json(report));
    print(json);
  } else {
    print_output("A  {}\nB  {}\n{}", first.about, second.about, text(report));
  }
  return ExitCode::kOk;
}

}  // namespace fullbore

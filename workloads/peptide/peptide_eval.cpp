#include "workloads/peptide/peptide_eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "fullbore/app/json_text.h"
#include "fullbore/app/margins.h"
#include "fullbore/app/output.h"
#include "fullbore/app/workload.h"
#include "fullbore/lab/quality/item_comparison.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/stored_config.h"
#include "workloads/peptide/assign_predictions.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/left_out.h"
#include "workloads/peptide/paired.h"
#include "workloads/peptide/peptide_job.h"
#include "workloads/peptide/peptide_keys.h"
#include "workloads/peptide/peptide_scores.h"
#include "workloads/peptide/peptide_spectra.h"
#include "workloads/peptide/peptide_workload.h"
#include "workloads/peptide/predictions.h"

namespace fullbore {
namespace {

using namespace peptide;
using Json = nlohmann::ordered_json;

constexpr int64_t kBatch = 64;

bool is_prediction_file(const std::string& path) {
  return prediction_format(path).has_value() && std::filesystem::is_regular_file(path);
}

void print(const Json& json) { write_output(json_text(json)); }

/// What is known of an annotated spectrum.
struct Truth {
  SpectrumName name;
  std::vector<int32_t> ids;
  int32_t unreadable = 0;  ///< residues of a sequence that cannot be read; 0: it is in `ids`
  double precursor_mass = kNoValue;
};

/// What every subject is measured on: all annotated spectra of a file.
struct Truths {
  std::vector<Truth> spectra;
  std::unordered_map<uint64_t, size_t> place;  ///< of an index in the file
  uint64_t unannotated = 0;
  uint64_t unscorable = 0;  ///< of `spectra`
  SpectrumReadCounts counts;
};

/// Residues of a text as written: capital letters out of brackets.
int32_t residues_written(const std::string& sequence) {
  int32_t residues = 0;
  int depth = 0;
  for (const char c : sequence) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (depth <= 0 && c >= 'A' && c <= 'Z') ++residues;
  }
  return std::max(1, residues);
}

/// By the charge that fits the sequence best, where the file states several.
double measured_mass(const Spectrum& spectrum, const Truth& truth,
                     const ResidueAlphabet& alphabet) {
  if (std::isnan(spectrum.precursor_mz) || spectrum.precursor_charge == 0) return kNoValue;
  const auto mass = [&](int charge) {
    return mass_of_precursor(spectrum.precursor_mz, charge, alphabet.constants());
  };
  if (spectrum.charges.size() < 2 || truth.ids.empty()) return mass(spectrum.precursor_charge);
  const double expected = neutral_mass(alphabet, truth.ids);
  return mass(*std::ranges::min_element(
      spectrum.charges, {}, [&](int charge) { return std::abs(mass(charge) - expected); }));
}

Truths read_truths(const PeptideEvalArguments& arguments, const Config& config,
                   const ResidueAlphabet& alphabet) {
  Truths truths;
  LeftOutList left_out(arguments.reading.left_out);
  const auto add = [&](const Spectrum& spectrum) {
    if (spectrum.sequence.empty()) {
      truths.unannotated += spectrum.problem.empty() ? 1 : 0;
      return;
    }
    Truth truth{{spectrum.scan, spectrum.title, spectrum.index}, {}, 0, kNoValue};
    PeptideText text = alphabet.read(spectrum.sequence);
    if (text.problem == PeptideText::Problem::none) {
      truth.ids = std::move(text.ids);
    } else {
      truth.unreadable = residues_written(spectrum.sequence);
      ++truths.unscorable;
      left_out.add(arguments.data, spectrum,
                   fmt::format("its sequence cannot be scored: {}", text.message));
    }
    truth.precursor_mass = measured_mass(spectrum, truth, alphabet);
    truths.place.emplace(spectrum.index, truths.spectra.size());
    truths.spectra.push_back(std::move(truth));
  };
  SpectrumReadOptions reading = reading_options(arguments.reading, config);
  // A spectrum that cannot be read may have a sequence all the same: whatever a model says of it, is nothing.
  reading.left_out = [&](const Spectrum& bad) {
    left_out.add(arguments.data, bad, bad.problem);
    add(bad);
  };
  const auto reader = open_spectra(arguments.data, reading).take_or_throw();
  Spectrum spectrum;
  while (reader->next(spectrum).take_or_throw()) add(spectrum);
  truths.counts = reader->counts();
  left_out.commit().take_or_throw();
  if (truths.spectra.empty())
    throw DataError(fmt::format("{}: no annotated spectrum among {}{}", arguments.data,
                                truths.counts.spectra,
                                left_out.first_bad().empty() ? "" : "; " + left_out.first_bad()));
  return truths;
}

/// One subject's answers to the spectra of a file.
struct Answered {
  std::vector<std::vector<int32_t>> ids;  ///< by truth; empty: none
  std::vector<double> scores;
  std::string about;
};

Answered from_file(const std::string& path, const Truths& truths, const ResidueAlphabet& alphabet) {
  const PredictionFile file = read_predictions(path).take_or_throw();
  std::vector<SpectrumName> names;
  for (const Truth& truth : truths.spectra) names.push_back(truth.name);
  const AssignedPredictions assigned = assign_predictions(file, names);
  Answered answers{{}, std::vector<double>(names.size(), kNoValue), ""};
  answers.ids.resize(names.size());
  size_t unknown = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const Prediction* const prediction = assigned.of_spectrum[i];
    if (prediction == nullptr || prediction->sequence.empty()) continue;
    Result<std::vector<int32_t>> ids = prediction_ids(file, *prediction, alphabet);
    if (!ids.ok()) ++unknown;
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

/// As `predict` has it, so that a model and the file of its predictions score alike.
Answered from_model(TrainedPeptideModel& model, const PeptideEvalArguments& arguments,
                    const Truths& truths, const ResidueAlphabet& alphabet, Console& console) {
  // The common alphabet has all that the model has.
  const std::vector<int32_t> translated = ids_among(alphabet, model.alphabet);
  Answered answers{{}, std::vector<double>(truths.spectra.size(), kNoValue), ""};
  answers.ids.resize(truths.spectra.size());
  const PreparationCounts counts =
      predict_file(model, arguments.data,
                   {.batch = kBatch, .reading = reading_options(arguments.reading, model.config)},
                   console, [&](const PredictedSpectrum& found) {
                     const auto place = truths.place.find(found.spectrum.index);
                     if (place == truths.place.end()) return;
                     for (const int32_t id : found.ids)
                       answers.ids[place->second].push_back(translated[static_cast<size_t>(id)]);
                     answers.scores[place->second] = found.score;
                   });
  const auto is_beyond = [&](const Truth& truth) {
    return std::ranges::any_of(truth.ids, [&](int32_t id) {
      return std::ranges::find(translated, id) == translated.end();
    });
  };
  const auto beyond = std::ranges::count_if(truths.spectra, is_beyond);
  answers.about = fmt::format("{} (step {}): {} of {} spectra read", model.path, model.step,
                              counts.kept, counts.read);
  if (beyond > 0)
    answers.about +=
        fmt::format(", {} with modifications that the model lacks (data.modifications)", beyond);
  return answers;
}

PeptideScorer score(const Answered& answers, const Truths& truths, const ResidueAlphabet& alphabet,
                    bool leaves_out) {
  PeptideScorer scorer(alphabet);
  for (size_t i = 0; i < truths.spectra.size(); ++i) {
    const Truth& truth = truths.spectra[i];
    if (leaves_out && truth.unreadable > 0) continue;
    scorer.add(
        {answers.ids[i], truth.ids, answers.scores[i], truth.precursor_mass, truth.unreadable});
  }
  return scorer;
}

constexpr const char* kLeaveOut = "leave-out";

std::string truths_text(const Truths& truths, const std::string& rule) {
  std::string text = fmt::format("{:<36}{} spectra, {} of them with a sequence", "read",
                                 truths.counts.spectra, truths.spectra.size());
  if (truths.counts.bad > 0)
    text += fmt::format(", {} malformed or without a charge", truths.counts.bad);
  if (truths.counts.ambiguous > 0)
    text += fmt::format(", {} with several charges", truths.counts.ambiguous);
  if (truths.counts.profiles > 0)
    text += fmt::format(", {} profiles centroided", truths.counts.profiles);
  return fmt::format("{}\n{:<36}{} sequences, {}\n", text, "unscorable", truths.unscorable,
                     rule == kLeaveOut ? "left out" : "counted as wrong");
}

Json truths_json(const Truths& truths, const std::string& rule) {
  return {{"read", truths.counts.spectra},
          {"annotated", truths.spectra.size()},
          {"unannotated", truths.unannotated},
          {"bad", truths.counts.bad},
          {"several_charges", truths.counts.ambiguous},
          {"centroided", truths.counts.profiles},
          {"unscorable", truths.unscorable},
          {"unscorable_rule", rule}};
}

/// The held-out part of the run itself: loss and metrics as training has them.
ExitCode eval_held_out(TrainedPeptideModel& model, bool json) {
  Console console;
  OpenedWorkload workload = open_workload(model.config, console);
  const TrainingJob job = workload.job(model.config);
  if (!job.validation)
    throw UsageError("eval: the run held nothing out; name annotated spectra by --data FILE");
  Evaluator evaluator(job.loss, *job.validation, model.state, trained_options(model.config));
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
  Subject(const std::string& path, const std::vector<std::string>& overrides) : path_(path) {
    if (!is_prediction_file(path)) model_.emplace(load_peptide_model(path, overrides));
  }
  TrainedPeptideModel* model() { return model_ ? &*model_ : nullptr; }
  Answered answer(const PeptideEvalArguments& arguments, const Truths& truths,
                  const ResidueAlphabet& alphabet, Console& console) {
    return model_ ? from_model(*model_, arguments, truths, alphabet, console)
                  : from_file(path_, truths, alphabet);
  }

 private:
  std::string path_;
  std::optional<TrainedPeptideModel> model_;
};

/// What is judged of answers to annotated spectra: the margins of peptide_quality(), by the field's measures.
QualityMetrics paired_quality() {
  QualityMetrics declared = peptide_quality({});
  const auto named = [&](size_t i, const char* name) {
    QualityMetric metric = declared[i];
    metric.name = name;
    return metric;
  };
  return {named(0, "aa_precision"), named(0, "aa_recall"), named(1, "peptide_precision"),
          named(2, "mass_error")};
}

MeasuredItems items_of(const std::string& subject, const std::string& data, const Truths& truths,
                       std::span<const PeptideOutcome> outcomes) {
  MeasuredItems items{subject, data, "spectra", {}, {}};
  for (const Truth& truth : truths.spectra) items.keys.push_back(std::to_string(truth.name.index));
  items.keys.resize(outcomes.size());  // what cannot be scored may be left out, of both
  const auto column = [&](const char* name, const auto& part, const auto& whole) {
    ItemColumn each{name, {}, {}};
    for (const PeptideOutcome& outcome : outcomes) {
      each.weights.push_back(whole(outcome));
      each.values.push_back(each.weights.back() > 0 ? part(outcome) / each.weights.back() : 0);
    }
    items.columns.push_back(std::move(each));
  };
  const auto matched = [](const PeptideOutcome& each) { return 1.0 * each.matched_residues; };
  column("aa_precision", matched,
         [](const PeptideOutcome& each) { return 1.0 * each.predicted_residues; });
  column("aa_recall", matched, [](const PeptideOutcome& each) { return 1.0 * each.true_residues; });
  column(
      "peptide_precision", [](const PeptideOutcome& each) { return each.is_matched ? 1.0 : 0; },
      [](const PeptideOutcome&) { return 1.0; });
  column(
      "mass_error", [](const PeptideOutcome& each) { return std::abs(each.mass_error_ppm); },
      [](const PeptideOutcome& each) { return std::isnan(each.mass_error_ppm) ? 0.0 : 1.0; });
  return items;
}

/// The residues that any subject knows, and every modification that the field's data sets have: what is measured does
/// not depend on who is.
ResidueAlphabet common_alphabet(std::initializer_list<TrainedPeptideModel*> models) {
  std::optional<ResidueAlphabet> alphabet;
  for (const TrainedPeptideModel* model : models) {
    if (model == nullptr) continue;
    if (!alphabet) alphabet = model->alphabet;
    alphabet =
        alphabet->extended(expand_modifications(peptide_keys(model->config).data.modifications));
  }
  return (alphabet ? *alphabet : ResidueAlphabet()).extended(massive_kb_modifications());
}

}  // namespace

ExitCode eval_peptides(const PeptideEvalArguments& arguments) {
  check_spectrum_overrides(arguments.overrides);
  Subject subject(arguments.subject, arguments.overrides);
  std::optional<Subject> against;
  if (!arguments.against.empty()) against.emplace(arguments.against, arguments.overrides);
  if (arguments.data.empty()) {
    if (against || !subject.model())
      throw UsageError(
          "eval: name the annotated spectra that the predictions are of by --data FILE");
    return eval_held_out(*subject.model(), arguments.json);
  }
  TrainedPeptideModel* const other_model = against ? against->model() : nullptr;
  TrainedPeptideModel* const model = subject.model() ? subject.model() : other_model;
  const ResidueAlphabet alphabet = common_alphabet({subject.model(), other_model});
  const Truths truths = read_truths(arguments, model ? model->config : Config(), alphabet);
  const bool leaves_out = arguments.unscorable == kLeaveOut;
  Console console;
  const Answered first = subject.answer(arguments, truths, alphabet, console);
  const PeptideScorer scorer = score(first, truths, alphabet, leaves_out);
  if (!against) {
    if (arguments.json) {
      Json json = {{"subject", arguments.subject},
                   {"data", arguments.data},
                   {"truth", truths_json(truths, arguments.unscorable)}};
      json.update(to_json(scorer.report()));
      print(json);
    } else {
      print_output("{}\n{}{}", first.about, truths_text(truths, arguments.unscorable),
                   text(scorer.report()));
    }
    return ExitCode::kOk;
  }
  const Answered second = against->answer(arguments, truths, alphabet, console);
  const PeptideScorer other = score(second, truths, alphabet, leaves_out);
  const PairedReport report = compare_peptides(scorer.outcomes(), other.outcomes());
  const ItemComparison comparison = compare_items(
      items_of(arguments.subject, arguments.data, truths, scorer.outcomes()),
      items_of(arguments.against, arguments.data, truths, other.outcomes()),
      with_margins(paired_quality(), arguments.judge, "peptide"), arguments.judge.options);
  if (arguments.json) {
    Json json = {{"a", arguments.subject},
                 {"b", arguments.against},
                 {"data", arguments.data},
                 {"truth", truths_json(truths, arguments.unscorable)}};
    json.update(to_json(report));
    json["no_worse"] = comparison_json(comparison);
    print(json);
  } else {
    print_output("A  {}\nB  {}\n{}{}\nIs the first no worse than the second?\n{}", first.about,
                 second.about, truths_text(truths, arguments.unscorable), text(report),
                 comparison_text(comparison));
  }
  return exit_code_of(comparison.test.verdict);
}

namespace {

PeptideEvalArguments asked(PeptideEvalArguments arguments, const EvalRequest& request) {
  if (request.batches > 0)
    throw UsageError(
        "eval: --batches is for language models; peptides are measured on all spectra");
  arguments.subject = request.subject;
  arguments.data = request.data;
  arguments.json = request.json;
  return arguments;
}

}  // namespace

EvalKind add_peptide_eval(Command eval) {
  auto arguments = std::make_shared<PeptideEvalArguments>();
  eval.add_option("--unscorable", arguments->unscorable,
                  "Of peptides: a true sequence with residues that cannot be read counts as wrong, "
                  "or is left out")
      .one_of({"wrong", "leave-out"})
      .shows_default();
  add_spectrum_arguments(eval, arguments->reading);
  eval.add_option("key=value", arguments->overrides,
                  "Of peptides: data.default_charge or data.min_peaks");
  EvalKind kind;
  kind.reads_file = is_prediction_file;
  kind.models = {"peptide"};
  kind.refuse = [arguments] {
    if (!arguments->overrides.empty())
      throw UsageError(
          fmt::format("eval: '{}' is for models of peptides", arguments->overrides[0]));
  };
  kind.run = [arguments](const EvalRequest& request) {
    return eval_peptides(asked(*arguments, request));
  };
  kind.compares = [](const EvalRequest& request) {
    return !request.data.empty() || is_prediction_file(request.subject) ||
           is_prediction_file(request.against);
  };
  kind.compare = [arguments](const EvalRequest& request, const JudgeArguments& judge) {
    PeptideEvalArguments both = asked(*arguments, request);
    both.against = request.against;
    both.judge = judge;
    return eval_peptides(both);
  };
  kind.examples = {"eval runs/peptide-1 --data annotated.mgf",
                   "eval casanovo.mztab --data annotated.mgf --against runs/peptide-1"};
  return kind;
}

}  // namespace fullbore

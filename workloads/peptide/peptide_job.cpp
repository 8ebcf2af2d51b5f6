#include "workloads/peptide/peptide_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "workloads/peptide/peptide_keys.h"
#include "workloads/peptide/spectrum_batch.h"

namespace fullbore {
namespace {

using namespace peptide;

/// A finite one: whole numbers are made of it.
std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::vector<ChargeShare> charge_shares(const std::vector<std::string>& items) {
  std::vector<ChargeShare> shares;
  for (const std::string& item : items) {
    const size_t colon = item.find(':');
    const std::optional<double> charge = parse_number(std::string_view(item).substr(0, colon));
    const std::optional<double> share =
        colon == std::string::npos ? std::nullopt
                                   : parse_number(std::string_view(item).substr(colon + 1));
    if (!charge || !share || *charge != std::trunc(*charge))
      throw UsageError(fmt::format(
          "config: data.charge_distribution: '{}' is no charge and its share, such as 2:0.7",
          item));
    // The model embeds no more; beyond its table it would read zeros.
    if (*charge < 1 || *charge > 6)
      throw UsageError(fmt::format(
          "config: data.charge_distribution: '{}': a charge from 1 to 6 was expected", item));
    shares.push_back({static_cast<int>(*charge), *share});
  }
  return shares;
}

SpectrumSettings base_settings(const Config& config) {
  const PeptideKeys::Data& data = peptide_keys(config).data;
  return {.min_length = static_cast<int>(data.min_length),
          .max_length = static_cast<int>(data.max_length),
          .noise_peaks = static_cast<int>(data.noise_peaks),
          .peak_dropout = data.peak_dropout,
          .mass_error_ppm = data.mass_error_ppm,
          .intensity_variation = data.intensity_variation,
          .clean_data_ratio = data.clean_data_ratio,
          .signal_suppression = data.signal_suppression,
          .high_noise_share = data.high_noise_share};
}

using Setter = void (*)(CurriculumStage&, double);

const std::map<std::string, Setter, std::less<>>& stage_setters() {
  static const std::map<std::string, Setter, std::less<>> setters = {
      {"min_length",
       [](CurriculumStage& s, double x) { s.spectra.min_length = static_cast<int>(x); }},
      {"max_length",
       [](CurriculumStage& s, double x) { s.spectra.max_length = static_cast<int>(x); }},
      {"noise_peaks",
       [](CurriculumStage& s, double x) { s.spectra.noise_peaks = static_cast<int>(x); }},
      {"peak_dropout", [](CurriculumStage& s, double x) { s.spectra.peak_dropout = x; }},
      {"mass_error_ppm", [](CurriculumStage& s, double x) { s.spectra.mass_error_ppm = x; }},
      {"intensity_variation",
       [](CurriculumStage& s, double x) { s.spectra.intensity_variation = x; }},
      {"clean_data_ratio", [](CurriculumStage& s, double x) { s.spectra.clean_data_ratio = x; }},
      {"signal_suppression",
       [](CurriculumStage& s, double x) { s.spectra.signal_suppression = x; }},
      {"high_noise_share", [](CurriculumStage& s, double x) { s.spectra.high_noise_share = x; }},
      {"spectrum_weight", [](CurriculumStage& s, double x) { s.spectrum_weight = x; }},
      {"precursor_weight", [](CurriculumStage& s, double x) { s.precursor_weight = x; }},
  };
  return setters;
}

/// "steps=8000 max_length=10 noise_peaks=2": what it leaves out is as in `stage`; -> its number of steps.
uint64_t read_stage(const std::string& text, CurriculumStage& stage) {
  const auto refuse = [&](std::string_view item, const std::string& what) {
    throw UsageError(fmt::format("config: train.curriculum_stages: '{}' in '{}' {}", item,
                                 text.substr(0, 60), what));
  };
  uint64_t steps = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    if (key == "name") {
      stage.name = value;
      continue;
    }
    const std::optional<double> number = parse_number(value);
    if (!number) refuse(item, "has no number");
    if (key == "steps") {
      if (*number < 1 || *number > 1e9) refuse(item, "is no number of steps in [1, 1000000000]");
      steps = static_cast<uint64_t>(*number);
      continue;
    }
    const auto setter = stage_setters().find(key);
    if (setter == stage_setters().end()) {
      std::vector<std::string> known = {"name", "steps"};
      for (const auto& [name, set] : stage_setters()) known.push_back(name);
      refuse(item, "is no setting of a stage." + did_you_mean(std::string(key), known));
    }
    if (std::abs(*number) > 1e6) refuse(item, "is out of range");
    setter->second(stage, *number);
  }
  if (steps == 0) refuse(text, "does not say its steps");
  return steps;
}

bool any_stage(const Curriculum& curriculum, double CurriculumStage::*weight) {
  return std::ranges::any_of(curriculum,
                             [&](const CurriculumStage& stage) { return stage.*weight > 0; });
}

}  // namespace

ResidueAlphabet peptide_alphabet(const Config& config) {
  return ResidueAlphabet(*parse_mass_table(peptide_keys(config).data.masses),
                         expand_modifications(peptide_keys(config).data.modifications));
}

std::vector<int32_t> ids_among(const ResidueAlphabet& others, const ResidueAlphabet& alphabet) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < alphabet.size(); ++id) {
    if (id < kFirstResidue) {
      ids.push_back(id);
      continue;
    }
    const PeptideText text = others.read(alphabet.name(id));
    const bool is_there = text.problem == PeptideText::Problem::none && text.ids.size() == 1;
    ids.push_back(is_there ? text.ids.front() : -1);
  }
  return ids;
}

ModelSizes peptide_sizes(const Config& config) {
  const PeptideKeys::Model& model = peptide_keys(config).model;
  return {.width = model.hidden_dim,
          .symbols = peptide_alphabet(config).size(),
          .slots = model.max_seq_len,
          .heads = model.num_heads,
          .encoder_layers = model.num_encoder_layers,
          .decoder_layers = model.num_decoder_layers,
          .supervision_steps = model.num_supervision_steps,
          .latent_steps = model.num_latent_steps,
          .max_mass = model.max_mass,
          .dropout = config.model.dropout,
          .step_embedding = model.step_embedding,
          .gated_answer = model.gated_answer,
          .precursor_mz = model.precursor_input == "mz"};
}

ObjectiveOptions peptide_objective(const Config& config) {
  const ResidueAlphabet alphabet = peptide_alphabet(config);
  const MassConstants& constants = alphabet.constants();
  const PeptideKeys::Loss& loss = peptide_keys(config).loss;
  const Curriculum curriculum = peptide_curriculum(config);
  return {.masses = {.symbols = {alphabet.masses().begin(), alphabet.masses().end()},
                     .water = constants.water,
                     .proton = constants.proton,
                     .carbon_monoxide = constants.carbon_monoxide},
          .end = kEnd,
          .sequence_ends = peptide_keys(config).data.start_and_end,
          .answers = loss.iteration_weights == "linear"    ? AnswerWeights::linear
                     : loss.iteration_weights == "uniform" ? AnswerWeights::uniform
                                                           : AnswerWeights::exponential,
          .label_smoothing = config.train.label_smoothing,
          .ce_weight = loss.ce_weight,
          .spectrum = loss.spectrum == "window_huber" ? SpectrumTerm::window_huber
                      : loss.spectrum == "window_l1"  ? SpectrumTerm::window_l1
                      : loss.spectrum == "coverage"   ? SpectrumTerm::coverage
                                                      : SpectrumTerm::rendered,
          .sigma = loss.coverage_sigma,
          .spectrum_used = any_stage(curriculum, &CurriculumStage::spectrum_weight),
          .precursor = loss.precursor == "smooth_l1" ? PrecursorPenalty::smooth_l1
                                                     : PrecursorPenalty::log_ppm,
          .precursor_used = any_stage(curriculum, &CurriculumStage::precursor_weight),
          .mask_padding = loss.mask_padding};
}

SyntheticOptions peptide_synthetic_options(const Config& config) {
  const PeptideKeys::Data& data = peptide_keys(config).data;
  SyntheticOptions options;
  options.batch_size = config.train.batch_size;
  options.max_peaks = peptide_keys(config).model.max_peaks;
  options.max_sequence = peptide_keys(config).model.max_seq_len;
  options.trim = data.trim_peaks;
  options.start_and_end = data.start_and_end;
  options.ion_types.clear();
  for (const std::string& name : data.ion_types) options.ion_types.push_back(*parse_ion_type(name));
  options.neutral_losses = data.neutral_losses;
  options.charges = charge_shares(data.charge_distribution);
  options.masses = *parse_mass_table(data.masses);
  options.scale_to_base_peak = data.scale_to_base_peak;
  options.most_intense = data.most_intense;
  options.seed = static_cast<uint64_t>(config.run.seed);
  check_synthetic_options(options);
  return options;
}

Curriculum peptide_curriculum(const Config& config) {
  const PeptideKeys& peptide = peptide_keys(config);
  CurriculumStage stage{.name = "all",
                        .spectra = base_settings(config),
                        .spectrum_weight = peptide.loss.spectrum_weight,
                        .precursor_weight = peptide.loss.precursor_weight};
  Curriculum curriculum;
  uint64_t first = 0;
  for (const std::string& text : peptide.curriculum_stages) {
    stage.name = fmt::format("{}", curriculum.size() + 1);
    stage.first_step = first;
    first += read_stage(text, stage);
    curriculum.push_back(stage);
  }
  if (curriculum.empty() && peptide.curriculum == "none") return {stage};
  if (curriculum.empty())
    curriculum = peptide.curriculum == "long" ? late_curriculum() : default_curriculum();
  check_curriculum(curriculum);
  return curriculum;
}

LossFunction peptide_loss(const Config& config) {
  const ModelSizes sizes = peptide_sizes(config);
  const ObjectiveOptions training = peptide_objective(config);
  ObjectiveOptions validation = training;
  validation.label_smoothing = 0;
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const Spectra spectra{batch[0], batch[1], batch[2], batch[3], batch[4]};
    const Targets targets{batch[5], batch[6], training.sequence_ends};
    const TermWeights weights{batch[7], batch.size() > 8 ? batch[8] : Tensor()};
    const Answers answers = recursive_model(trace, spectra, sizes);
    const Scope scope(trace, "loss");  // which stays in fp32: compile_options()
    Objective result =
        objective(answers, spectra, targets, weights, trace.training() ? training : validation);
    Loss loss(result.loss, result.slots);
    for (const CountedMean& term : result.terms) loss.terms.push_back({term.mean, term.count});
    for (NamedScalar& metric : result.metrics)
      loss.metrics.push_back({std::move(metric.name), metric.value, metric.weight});
    return loss;
  };
}

}  // namespace fullbore

#include "workloads/peptide/slot_scores.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/check.h"
#include "workloads/peptide/ions.h"

namespace fullbore::peptide {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::ordered_json to_json(const SlotCounts& counts) {
  return {{"spectra", counts.spectra},
          {"token_accuracy", counts.token_accuracy()},
          {"token_accuracy_i_as_l", counts.token_accuracy_but_leucine()},
          {"sequence_accuracy", counts.sequence_accuracy()},
          {"sequence_accuracy_i_as_l", counts.sequence_accuracy_but_leucine()}};
}

}  // namespace

double StepCounts::accuracy() const { return share(correct, slots); }
double StepCounts::flip_rate() const { return share(flipped, slots); }
double StepCounts::edit_quality() const { return share(improved - regressed, flipped); }

void SlotCounts::add(const SlotOutcome& outcome) {
  ++spectra;
  slots += outcome.slots;
  correct += outcome.correct;
  correct_but_leucine += outcome.correct_but_leucine;
  equal += outcome.is_equal ? 1 : 0;
  equal_but_leucine += outcome.is_equal_but_leucine ? 1 : 0;
}

double SlotCounts::token_accuracy() const { return share(correct, slots); }
double SlotCounts::token_accuracy_but_leucine() const { return share(correct_but_leucine, slots); }
double SlotCounts::sequence_accuracy() const { return share(equal, spectra); }
double SlotCounts::sequence_accuracy_but_leucine() const {
  return share(equal_but_leucine, spectra);
}

void SlotScorer::add_steps(const ScoredSlots& spectrum) {
  const size_t width = spectrum.targets.size();
  for (size_t step = 0; step < counts_.steps.size(); ++step) {
    const std::span<const int32_t> answer = spectrum.answers.subspan(step * width, width);
    StepCounts& counts = counts_.steps[step];
    for (size_t slot = 0; slot < width; ++slot) {
      if (spectrum.target_mask[slot] == 0) continue;
      const int32_t target = spectrum.targets[slot];
      const bool is_correct = answer[slot] == target;
      ++counts.slots;
      counts.correct += is_correct ? 1 : 0;
      if (step == 0) continue;
      const int32_t before = spectrum.answers[(step - 1) * width + slot];
      counts.flipped += answer[slot] != before ? 1 : 0;
      counts.improved += is_correct && before != target ? 1 : 0;
      counts.regressed += !is_correct && before == target ? 1 : 0;
    }
  }
}

const SlotOutcome& SlotScorer::add(const ScoredSlots& spectrum) {
  const size_t width = spectrum.targets.size();
  FB_CHECK(width > 0 && spectrum.target_mask.size() == width && !spectrum.answers.empty() &&
               spectrum.answers.size() % width == 0,
           "{} answers, {} targets, {} of their mask", spectrum.answers.size(), width,
           spectrum.target_mask.size());
  const size_t steps = spectrum.answers.size() / width;
  if (counts_.steps.empty()) counts_.steps.resize(steps);
  FB_CHECK(counts_.steps.size() == steps, "{} steps after {}", steps, counts_.steps.size());
  add_steps(spectrum);

  const std::span<const int32_t> answer = spectrum.answers.last(width);
  SlotOutcome outcome;
  for (size_t slot = 0; slot < width; ++slot) {
    if (spectrum.target_mask[slot] == 0) continue;
    const int32_t target = spectrum.targets[slot];
    ++outcome.slots;
    outcome.correct += answer[slot] == target ? 1 : 0;
    outcome.correct_but_leucine += merged_leucine(answer[slot]) == merged_leucine(target) ? 1 : 0;
  }
  outcome.is_equal = outcome.correct == outcome.slots;
  outcome.is_equal_but_leucine = outcome.correct_but_leucine == outcome.slots;
  const std::vector<int32_t> decoded = decoded_ids(answer, spectrum.target_mask);
  if (!decoded.empty() && !std::isnan(spectrum.precursor_mass)) {
    outcome.absolute_mass_error_ppm =
        std::abs(mass_error_ppm(neutral_mass(*alphabet_, decoded), spectrum.precursor_mass));
    mass_error_sum_ += outcome.absolute_mass_error_ppm;
    ++counts_.mass_errors;
  }
  counts_.all.add(outcome);
  const auto residues = decoded_ids(spectrum.targets, spectrum.target_mask).size();
  counts_.by_length[length_bucket(static_cast<int64_t>(residues))].add(outcome);
  outcomes_.push_back(outcome);
  return outcomes_.back();
}

SlotReport SlotScorer::report() const {
  SlotReport report = counts_;
  if (report.mass_errors > 0)
    report.mean_mass_error_ppm = mass_error_sum_ / static_cast<double>(report.mass_errors);
  return report;
}

nlohmann::ordered_json to_json(const SlotReport& report) {
  nlohmann::ordered_json json = to_json(report.all);
  const bool has_error = report.mass_errors > 0;
  json["mean_mass_error_ppm"] =
      has_error ? nlohmann::ordered_json(report.mean_mass_error_ppm) : nlohmann::ordered_json();
  for (const StepCounts& step : report.steps)
    json["steps"].push_back({{"token_accuracy", step.accuracy()},
                             {"flip_rate", step.flip_rate()},
                             {"edit_quality", step.edit_quality()},
                             {"improved", step.improved},
                             {"regressed", step.regressed}});
  for (size_t bucket = 0; bucket < kBuckets; ++bucket)
    json["by_length"][kBucketNames[bucket]] = to_json(report.by_length[bucket]);
  return json;
}

std::string text(const SlotReport& report) {
  const auto row = [](const char* name, const SlotCounts& counts) {
    return fmt::format("{:<12}{:>8}{:>9.2f} %{:>9.2f} %{:>12.2f} %{:>10.2f} %\n", name,
                       counts.spectra, 100 * counts.token_accuracy(),
                       100 * counts.token_accuracy_but_leucine(), 100 * counts.sequence_accuracy(),
                       100 * counts.sequence_accuracy_but_leucine());
  };
  std::string lines = "residues     spectra     tokens    I as L     sequences      I as L\n";
  lines += row("all", report.all);
  for (size_t bucket = 0; bucket < kBuckets; ++bucket)
    if (report.by_length[bucket].spectra > 0)
      lines += row(kBucketNames[bucket], report.by_length[bucket]);
  if (report.mass_errors > 0)
    lines += fmt::format("mass error   mean {:.3f} ppm, absolute\n", report.mean_mass_error_ppm);
  lines += "\nstep    tokens     flips  edit quality\n";
  for (size_t step = 0; step < report.steps.size(); ++step) {
    const StepCounts& counts = report.steps[step];
    lines += fmt::format("{:<4}{:>8.2f} %{:>8.2f} %{:>14.3f}\n", step, 100 * counts.accuracy(),
                         100 * counts.flip_rate(), counts.edit_quality());
  }
  return lines;
}

}  // namespace fullbore::peptide

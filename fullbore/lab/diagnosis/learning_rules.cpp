// Advice on how the model of a run learns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "fullbore/lab/diagnosis/advice.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

std::vector<double> values_of(std::span<const CurvePoint> points) {
  std::vector<double> values;
  for (const CurvePoint& point : points) values.push_back(point.value);
  return values;
}

double mean(std::span<const CurvePoint> points) {
  double sum = 0;
  for (const CurvePoint& point : points) sum += point.value;
  return sum / static_cast<double>(points.size());
}

/// Means of `count` pieces of the curve, which has more points than that, in order.
std::vector<double> piece_means(const Curve& curve, size_t count) {
  std::vector<double> means;
  const std::span<const CurvePoint> all = curve;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * all.size() / count;
    means.push_back(mean(all.subspan(begin, (i + 1) * all.size() / count - begin)));
  }
  return means;
}

std::string learning_rate(double rate) { return fmt::format("optim.learning_rate={:.3g}", rate); }

Advice slower_learning(const RunFacts& facts, std::string finding) {
  const double rate = facts.config.optim.learning_rate;
  return {.finding = std::move(finding),
          .change = learning_rate(rate / 2),
          .undo = learning_rate(rate)};
}

void loss_scale_falls(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr size_t kFewest = 8;
  const Curve& scale = facts.loss_scale;
  if (scale.size() < kFewest) return;
  const double middle = scale[scale.size() / 2].value;
  const double last = scale.back().value;
  if (last > middle / 4) return;
  advice.push_back(
      {.finding = fmt::format("The loss scale of fp16 still falls, from {:.0f} in the middle of "
                              "the run to {:.0f}: gradients overflow again and again.",
                              middle, last),
       .change = "engine.precision=bf16",
       .undo = "engine.precision=fp16"});
}

// Beyond what the points before it vary by, robustly: a loss is noisy, and a spike is what noise does not make.
void loss_spikes(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr size_t kWindow = 20;
  constexpr double kDeviations = 10;
  constexpr double kLeastShare = 0.1;  // of all that the loss has fallen
  constexpr double kOfDeviation =
      1.4826;  // standard deviations of a normal variable in its median absolute one
  const Curve& loss = facts.loss;
  if (loss.size() <= kWindow) return;
  const double lowest = std::ranges::min_element(loss, {}, &CurvePoint::value)->value;
  const double fallen = loss.front().value - lowest;
  const CurvePoint* worst = nullptr;
  double worst_excess = 0;
  for (size_t i = kWindow; i < loss.size(); ++i) {
    const std::vector<double> before = values_of(std::span(loss).subspan(i - kWindow, kWindow));
    const double usual = median(before);
    std::vector<double> distances;
    for (const double value : before) distances.push_back(std::abs(value - usual));
    const double excess = loss[i].value - usual;
    const double noise = kOfDeviation * median(distances);
    if (excess < kDeviations * noise || excess < kLeastShare * fallen || excess <= worst_excess)
      continue;
    worst = &loss[i];
    worst_excess = excess;
  }
  if (worst == nullptr) return;
  Advice found = slower_learning(
      facts, fmt::format("The loss leaps by {:.3g} at step {}.", worst_excess, worst->step));
  if (facts.config.optim.clip_norm == 0) {
    found.change = "optim.clip_norm=1";
    found.undo = "optim.clip_norm=0";
  }
  advice.push_back(std::move(found));
}

constexpr size_t kPieces = 10;
constexpr size_t kFewestPoints = 4 * kPieces;  // for a mean of a piece to say something

bool diverges(const Curve& loss) {
  constexpr double kLeastShare = 0.2;  // of all that the loss had fallen
  if (loss.size() < kFewestPoints) return false;
  const std::vector<double> means = piece_means(loss, kPieces);
  const double lowest = *std::ranges::min_element(means);
  const double risen = means.back() - lowest;
  return risen > 0 && risen > kLeastShare * std::max(0.0, loss.front().value - lowest) &&
         means.back() > means[kPieces - 2];
}

void loss_diverges(const RunFacts& facts, std::vector<Advice>& advice) {
  if (!diverges(facts.loss)) return;
  const std::vector<double> means = piece_means(facts.loss, kPieces);
  advice.push_back(slower_learning(
      facts, fmt::format("The loss diverges: it was {:.4f} at its lowest and is {:.4f}.",
                         *std::ranges::min_element(means), means.back())));
}

void loss_stands_still(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kMostShare = 0.01;  // of all that the loss has fallen
  const Curve& loss = facts.loss;
  if (loss.size() < kFewestPoints || diverges(loss)) return;
  const std::vector<double> means = piece_means(loss, kPieces);
  const size_t half = kPieces / 2;
  const double fallen = loss.front().value - *std::ranges::min_element(means);
  const double lately = means[half] - *std::min_element(means.begin() + half, means.end());
  if (lately > kMostShare * std::max(fallen, 0.0)) return;
  const int64_t since = loss[loss.size() / 2].step;
  Advice found{.finding = fmt::format("The loss has stood still at {:.4f} since step {}.",
                                      means.back(), since)};
  if (facts.config.train.early_stopping == 0) {
    found.change = "train.early_stopping=5";
    found.gain = facts.whole.loop_seconds() / 2 / facts.whole.wall_seconds;
    found.undo = "train.early_stopping=0";
  } else {
    found.change = learning_rate(2 * facts.config.optim.learning_rate);
    found.undo = learning_rate(facts.config.optim.learning_rate);
  }
  advice.push_back(std::move(found));
}

void validation_above_the_base(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr int64_t kFewestSteps = 100;
  if (facts.validation_loss.empty() || facts.steps < kFewestSteps) return;
  const bool from_the_start = facts.validation_loss.front().step == 0;
  if (!from_the_start && facts.loss.empty()) return;
  // What the model knew before it had learned anything.
  const double base =
      from_the_start ? facts.validation_loss.front().value : facts.loss.front().value;
  const CurvePoint last = facts.validation_loss.back();
  if (last.step == 0 || last.value <= base) return;
  advice.push_back(slower_learning(
      facts, fmt::format("The validation loss at step {} is {:.4f}, above the {:.4f} that the run "
                         "began with: nothing was learned that holds elsewhere.",
                         last.step, last.value, base)));
}

void validation_rises(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeastShare = 0.02;  // of all that it has fallen
  const Curve& validation = facts.validation_loss;
  if (validation.size() < 3 || facts.loss.empty()) return;
  const auto best = std::ranges::min_element(validation, {}, &CurvePoint::value);
  const CurvePoint& last = validation.back();
  if (validation.end() - best < 3) return;  // twice at least it was no better
  if (last.value - best->value <= kLeastShare * (validation.front().value - best->value)) return;
  std::vector<CurvePoint> since;
  for (const CurvePoint& point : facts.loss)
    if (point.step >= best->step) since.push_back(point);
  if (since.size() < 2) return;
  const size_t half = since.size() / 2;
  if (mean(std::span(since).subspan(half)) >= mean(std::span(since).first(half))) return;
  const double wasted = static_cast<double>(last.step - best->step) /
                        static_cast<double>(std::max<int64_t>(1, last.step));
  advice.push_back(
      {.finding = fmt::format("The validation loss rises since step {}, from {:.4f} to {:.4f}, "
                              "while the training loss falls: the model learns by heart.",
                              best->step, best->value, last.value),
       .change = "train.early_stopping=3",
       .gain = facts.config.train.early_stopping > 0
                   ? Advice::kUnknown
                   : wasted * facts.whole.loop_seconds() / facts.whole.wall_seconds,
       .undo = fmt::format("train.early_stopping={}", facts.config.train.early_stopping)});
}

void parameters_at_rest(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr size_t kMostNamed = 4;
  constexpr size_t kMostFrozen = 8;  // more of them are hardly meant to rest
  const std::vector<std::string>& names = facts.idle_parameters;
  if (names.empty()) return;
  const std::span<const std::string> named =
      std::span(names).first(std::min(names.size(), kMostNamed));
  const std::string more =
      names.size() > kMostNamed ? fmt::format(" and {} more", names.size() - kMostNamed) : "";
  Advice found{.finding = fmt::format("No gradient has reached {}{} in {} steps.",
                                      fmt::join(named, ", "), more, facts.steps),
               .change = "a loss that depends on them"};
  if (names.size() <= kMostFrozen) {
    found.change = fmt::format("train.freeze=[{}]", fmt::join(names, ","));
    found.undo = fmt::format("train.freeze=[{}]", fmt::join(facts.config.train.freeze, ","));
  }
  advice.push_back(std::move(found));
}

void steps_are_skipped(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeastShare = 0.01;
  if (facts.config.engine.precision == "fp16" || facts.steps == 0) return;
  const double share = static_cast<double>(facts.skipped_steps) / static_cast<double>(facts.steps);
  if (share < kLeastShare) return;
  advice.push_back(
      slower_learning(facts, fmt::format("{} of {} steps were not finite and were skipped.",
                                         facts.skipped_steps, facts.steps)));
}

constexpr std::array kRules = {
    AdviceRule{"loss-scale", "the loss scale of fp16 still falls in the second half",
               loss_scale_falls},
    AdviceRule{"loss-spike", "the loss leaps beyond its noise", loss_spikes},
    AdviceRule{"divergence", "the loss rises again by a fifth of what it had fallen",
               loss_diverges},
    AdviceRule{"plateau", "the second half gains less than 1 % of what the loss has fallen",
               loss_stands_still},
    AdviceRule{"validation-above-base", "held-out batches are no better off than at the start",
               validation_above_the_base},
    AdviceRule{"overfitting", "the validation loss rises while the training loss falls",
               validation_rises},
    AdviceRule{"no-gradient", "a parameter has had no gradient in any step", parameters_at_rest},
    AdviceRule{"skipped-steps", "1 % of the steps or more were not finite", steps_are_skipped},
};

}  // namespace

std::span<const AdviceRule> learning_rules() { return kRules; }

}  // namespace fullbore

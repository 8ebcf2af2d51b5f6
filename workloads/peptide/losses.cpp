#include "workloads/peptide/losses.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "fullbore/base/check.h"

namespace fullbore::peptide {
namespace {

constexpr double kWindow = 0.5;       // Da
constexpr double kTemperature = 0.1;  // Da
constexpr double kHuber = 0.2;        // Da
constexpr double kResidue = 110;      // Da, about the mean
constexpr double kSmooth = 0.1;

Tensor negative_infinity_unless(Tensor condition, Tensor x) {
  return select(condition, x, -std::numeric_limits<double>::infinity());
}

// [B,J] against [B,P] -> [B,J,P]
Tensor differences(Tensor ions, Tensor mz) { return expand_dims(ions, 2) - expand_dims(mz, 1); }

// x [B], over the spectra that there are: the rest of a last batch has no mass.
CountedMean mean_of_spectra(Tensor x, const Observed& observed) {
  const Tensor present = greater(observed.mass, 0.0);
  const Tensor count = reduce_sum(cast(present, x.dtype()), {0});
  return {reduce_sum(select(present, x, 0.0), {0}) / maximum(count, 1.0), count};
}

/// Slots of residues: all but the first and the last one, where those are for marks.
Tensor residue_slots(Tensor x, const Targets& targets) {
  return targets.sequence_ends ? slice(x, 1, 1, x.dim(1) - 1) : x;
}

/// Ions of the broken bonds.
struct Fragments {
  Tensor mz;       ///< [B,J]
  Tensor present;  ///< bool [B,J]: is there such a bond, between two residues?
};

/// b and y ions of charges 1 and 2.
Fragments fragments(Tensor expected, const Targets& targets, const LossMasses& masses) {
  const Tensor residues = residue_slots(expected, targets);
  const int64_t count = residues.dim(1);
  const Tensor b = slice(cumsum(residues, 1), 1, 0, count - 1) + masses.proton;
  const Tensor y = slice(cumsum(residues, 1, false, /*reverse=*/true), 1, 1, count) +
                   (masses.water + masses.proton);
  // A slot is a residue's if the next one counts: there, at the latest, stands the end.
  const Tensor real =
      targets.sequence_ends ? slice(targets.mask, 1, 2, targets.mask.dim(1)) : targets.mask;
  const Tensor bond = slice(real, 1, 1, count);
  const Tensor mz[] = {b, y, (b + masses.proton) * 0.5, (y + masses.proton) * 0.5};
  const Tensor present[] = {bond, bond, bond, bond};
  return {concat(mz, 1), concat(present, 1)};
}

// sum_jk a_j b_k exp(-((x_j - y_k) / sigma)^2 / 4) per spectrum: what two drawn spectra share.
Tensor overlap(Tensor x, Tensor a, Tensor y, Tensor b, double sigma) {
  const Tensor distance = differences(x, y) * (1 / sigma);
  const Tensor near = exp(distance * distance * -0.25);
  return reduce_sum(near * expand_dims(a, 2) * expand_dims(b, 1), {1, 2});
}

}  // namespace

std::vector<double> answer_weights(AnswerWeights weights, int64_t answers) {
  std::vector<double> result;
  for (int64_t t = 0; t < answers; ++t) {
    const auto step = static_cast<double>(t);
    result.push_back(weights == AnswerWeights::linear    ? step + 1
                     : weights == AnswerWeights::uniform ? 1
                                                         : std::exp(step / 2));
  }
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& weight : result) weight /= sum;
  return result;
}

Tensor answer_cross_entropy(Tensor logits, const Targets& targets, double label_smoothing) {
  const int64_t answers = logits.dim(0);
  const Tensor ids = select(targets.mask, targets.ids, -1.0);  // which cross_entropy() ignores
  const Tensor all = broadcast_to(expand_dims(ids, 0), ids.shape().inserted(0, answers));
  const Tensor losses = cross_entropy(logits, all, {.label_smoothing = label_smoothing});
  const Tensor count = reduce_sum(cast(targets.mask, losses.dtype()), {0, 1});
  return reduce_sum(losses, {1, 2}) / maximum(count, 1.0);
}

Tensor expected_masses(Tensor probabilities, const Targets& targets, const LossMasses& masses,
                       bool mask_padding) {
  const DType dtype = probabilities.dtype();
  FB_CHECK(static_cast<int64_t>(masses.symbols.size()) == probabilities.dim(-1),
           "{} masses of {} symbols", masses.symbols.size(), probabilities.dim(-1));
  // A sum, not a product of matrices: those are of low precision where engine.precision says so.
  const Tensor table = constant(probabilities.builder(), {dtype, {probabilities.dim(-1)}},
                                std::vector<double>(masses.symbols));
  const Tensor expected = reduce_sum(probabilities * table, {2});
  return mask_padding ? expected * cast(targets.mask, dtype) : expected;
}

CountedMean window_loss(Tensor expected, const Observed& observed, const Targets& targets,
                        const LossMasses& masses, WindowPenalty penalty) {
  const Tensor residues = residue_slots(expected, targets);
  const int64_t count = residues.dim(1);
  const Tensor b = slice(cumsum(residues, 1), 1, 0, count - 1) + masses.proton;
  const Tensor y = slice(cumsum(residues, 1, false, /*reverse=*/true), 1, 0, count - 1) +
                   (masses.water + masses.proton);
  const Tensor series[] = {b, y, b - masses.carbon_monoxide};
  const Tensor distance = abs(differences(concat(series, 1), observed.mz));
  const Tensor candidate =
      logical_and(expand_dims(observed.mask, 1), less(distance, kWindow));  // [B,J,P]
  const Tensor share = softmax(negative_infinity_unless(candidate, distance * (-1 / kTemperature)));
  const Tensor near = minimum(distance, kWindow);
  const Tensor cost =
      penalty == WindowPenalty::absolute
          ? near
          : select(less_equal(near, kHuber), near * near * 0.5, (near - kHuber / 2) * kHuber);
  const Tensor mean_cost = reduce_sum(share * cost, {2});
  const Tensor mean_intensity = reduce_sum(share * expand_dims(observed.intensity, 1), {2});
  const Tensor any = reduce_max(cast(candidate, expected.dtype()), {2});
  const Tensor matched = reduce_sum(any, {0, 1});
  return {reduce_sum(mean_cost * mean_intensity, {0, 1}) / maximum(matched, 1.0), matched};
}

CountedMean coverage_loss(Tensor expected, const Observed& observed, const Targets& targets,
                          const LossMasses& masses, double sigma) {
  const Fragments ions = fragments(expected, targets, masses);
  const Tensor distance = differences(ions.mz, observed.mz) * (1 / sigma);
  const Tensor near = select(expand_dims(ions.present, 2), exp(distance * distance * -0.5), 0.0);
  const Tensor explained = reduce_max(near, {1});  // [B,P]
  const Tensor intensity = observed.intensity * cast(observed.mask, expected.dtype());
  const Tensor total = reduce_sum(intensity, {1}, /*keep_dims=*/true);
  const Tensor weight = intensity / select(greater(total, 0.0), total, 1.0);
  return mean_of_spectra(1.0 - reduce_sum(weight * explained, {1}), observed);
}

CountedMean rendered_loss(Tensor expected, const Observed& observed, const Targets& targets,
                          const LossMasses& masses, double sigma) {
  const DType dtype = expected.dtype();
  const Fragments ions = fragments(expected, targets, masses);
  const Tensor heights = cast(ions.present, dtype);
  const Tensor intensity = observed.intensity * cast(observed.mask, dtype);
  const Tensor shared = overlap(ions.mz, heights, observed.mz, intensity, sigma);
  const Tensor own = overlap(ions.mz, heights, ions.mz, heights, sigma) *
                     overlap(observed.mz, intensity, observed.mz, intensity, sigma);
  // A spectrum without a peak has no direction: its cosine is 0.
  const Tensor any = greater(own, 0.0);
  const Tensor cosine = select(any, shared * rsqrt(select(any, own, 1.0)), 0.0);
  return mean_of_spectra(1.0 - cosine, observed);
}

CountedMean precursor_loss(Tensor expected, const Observed& observed, const LossMasses& masses,
                           PrecursorPenalty penalty) {
  const Tensor error = abs(reduce_sum(expected, {1}) + masses.water - observed.mass);
  if (penalty == PrecursorPenalty::log_ppm)
    return mean_of_spectra(log1p(error / maximum(observed.mass, 1.0) * (1e6 / 1e5)), observed);
  const Tensor x = error * (1 / kResidue);
  return mean_of_spectra(select(less(x, kSmooth), x * x * (0.5 / kSmooth), x - kSmooth / 2),
                         observed);
}

}  // namespace fullbore::peptide

#include "workloads/peptide/objective.h"

#include <fmt/format.h>

namespace fullbore::peptide {
namespace {

Tensor row(Tensor x, int64_t index) { return squeeze(slice(x, 0, index, index + 1), 0); }

Tensor count(Tensor condition, std::vector<int64_t> axes) {
  return reduce_sum(cast(condition, DType::f32), std::move(axes));
}

// a / b, 0 where there is nothing to be counted.
Tensor share(Tensor a, Tensor b) { return a / maximum(b, 1.0); }

CountedMean spectrum_loss(Tensor expected, const Observed& observed, const Targets& targets,
                          const ObjectiveOptions& options) {
  switch (options.spectrum) {
    case SpectrumTerm::coverage:
      return coverage_loss(expected, observed, targets, options.masses, options.sigma);
    case SpectrumTerm::rendered:
      return rendered_loss(expected, observed, targets, options.masses, options.sigma);
    default:
      return window_loss(expected, observed, targets, options.masses,
                         options.spectrum == SpectrumTerm::window_l1 ? WindowPenalty::absolute
                                                                     : WindowPenalty::huber);
  }
}

// Of what is decoded up to the end mark, or the first slot that does not count; answers without a residue are left out.
NamedScalar mass_error(Tensor ids, const Targets& targets, Tensor precursor_mass,
                       const ObjectiveOptions& options) {
  const Tensor ended =
      logical_or(equal(ids, static_cast<double>(options.end)), logical_not(targets.mask));
  const Tensor before = equal(cumsum(cast(ended, DType::i32), 1), 0.0);
  const Tensor table =
      constant(ids.builder(), {DType::f32, {static_cast<int64_t>(options.masses.symbols.size())}},
               std::vector<double>(options.masses.symbols));
  const Tensor residues = reduce_sum(select(before, gather(table, ids), 0.0), {1});
  const Tensor any = greater(residues, 0.0);
  const Tensor error = abs(residues + options.masses.water - precursor_mass) / precursor_mass * 1e6;
  const Tensor answers = count(any, {0});
  return {"mean_mass_error_ppm", share(reduce_sum(select(any, error, 0.0), {0}), answers), answers};
}

}  // namespace

std::vector<NamedScalar> answer_metrics(Tensor logits, const Targets& targets,
                                        Tensor precursor_mass, const ObjectiveOptions& options) {
  const int64_t answers = logits.dim(0);
  const Tensor ids = argmax(logits, 3);  // [T,B,S]
  const Tensor slots = count(targets.mask, {0, 1});
  const Tensor last = row(ids, answers - 1);
  const auto right = [&](Tensor answer) {
    return logical_and(equal(Operand(answer), Operand(targets.ids)), targets.mask);
  };
  std::vector<NamedScalar> metrics;
  metrics.push_back({"token_accuracy", share(count(right(last), {0, 1}), slots)});
  const Tensor wrong =
      count(logical_and(not_equal(Operand(last), Operand(targets.ids)), targets.mask), {1});
  const Tensor present = greater(count(targets.mask, {1}), 0.0);  // the last batch may not be full
  const Tensor spectra = count(present, {0});
  metrics.push_back({"sequence_accuracy",
                     share(count(logical_and(equal(wrong, 0.0), present), {0}), spectra), spectra});
  metrics.push_back(mass_error(last, targets, precursor_mass, options));
  for (int64_t t = 0; t + 1 < answers; ++t)
    metrics.push_back(
        {fmt::format("token_accuracy_{}", t), share(count(right(row(ids, t)), {0, 1}), slots)});
  for (int64_t t = 1; t < answers; ++t) {
    const Tensor changed = not_equal(Operand(row(ids, t)), Operand(row(ids, t - 1)));
    metrics.push_back({fmt::format("flip_rate_{}", t),
                       share(count(logical_and(changed, targets.mask), {0, 1}), slots)});
  }
  return metrics;
}

Objective objective(const Answers& answers, const Spectra& spectra, const Targets& targets,
                    const TermWeights& weights, const ObjectiveOptions& options) {
  const int64_t steps = answers.logits.dim(0);
  const Tensor each = answer_cross_entropy(answers.logits, targets, options.label_smoothing);
  const Tensor answer_weight =
      constant(each.builder(), {each.dtype(), {steps}}, answer_weights(options.answers, steps));
  Objective result;
  result.slots = count(targets.mask, {0, 1});
  result.terms = {{reduce_sum(each * answer_weight, {0}) * options.ce_weight, result.slots}};

  const Tensor probabilities = softmax(row(answers.logits, steps - 1));
  const Tensor expected =
      expected_masses(probabilities, targets, options.masses, options.mask_padding);
  const Observed observed{spectra.mz, spectra.intensity, spectra.peak_mask, spectra.precursor_mass};
  const CountedMean spectrum = spectrum_loss(expected, observed, targets, options);
  if (options.spectrum_used)
    result.terms.push_back({spectrum.mean * weights.spectrum, spectrum.count});
  const CountedMean precursor =
      precursor_loss(expected, observed, options.masses, options.precursor);
  if (options.precursor_used && weights.precursor.valid())
    result.terms.push_back({precursor.mean * weights.precursor, precursor.count});
  for (const CountedMean& term : result.terms)
    result.loss = result.loss.valid() ? result.loss + term.mean : term.mean;

  for (int64_t t = 0; t < steps; ++t)
    result.metrics.push_back({fmt::format("ce_step_{}", t), row(each, t)});
  result.metrics.push_back({"ce_final", row(each, steps - 1)});
  result.metrics.push_back({"spectrum_loss", spectrum.mean, spectrum.count});
  result.metrics.push_back({"precursor_loss", precursor.mean, precursor.count});
  for (NamedScalar& metric :
       answer_metrics(answers.logits, targets, spectra.precursor_mass, options))
    result.metrics.push_back(std::move(metric));
  return result;
}

}  // namespace fullbore::peptide

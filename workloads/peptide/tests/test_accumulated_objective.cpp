// A batch of spectra in parts is the whole batch, though each term of the loss is a mean of other things.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/philox.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/step_function.h"
#include "workloads/peptide/objective.h"
#include "workloads/peptide/spectrum_batch.h"
#include "workloads/peptide/tests/traced.h"

namespace fullbore::peptide {
namespace {

using testing::initial_parameters;
using testing::literal;
using testing::reference_masses;

constexpr int64_t kBatch = 6, kPeaks = 24, kSlots = 7;
constexpr ModelSizes kSmall{.width = 40,
                            .slots = kSlots,
                            .heads = 2,
                            .encoder_layers = 1,
                            .decoder_layers = 1,
                            .supervision_steps = 2,
                            .latent_steps = 1};

struct Variant {
  SpectrumTerm spectrum = SpectrumTerm::window_huber;
  PrecursorPenalty precursor = PrecursorPenalty::smooth_l1;
  bool mask_padding = true;
  bool terms = true;  // false: as if all of it were a mean over slots
};

LossFunction loss_of(const Variant& variant) {
  ObjectiveOptions options;
  options.masses = reference_masses();
  options.label_smoothing = 0.1;
  options.spectrum = variant.spectrum;
  options.sigma = 2;
  options.precursor = variant.precursor;
  options.precursor_used = true;
  options.mask_padding = variant.mask_padding;
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const Spectra spectra{batch[0], batch[1], batch[2], batch[3], batch[4]};
    const Answers answers = recursive_model(trace, spectra, kSmall);
    const Objective result =
        objective(answers, spectra, {batch[5], batch[6], true}, {batch[7], batch[8]}, options);
    Loss loss(result.loss, result.slots);
    for (const CountedMean& term : result.terms)
      if (variant.terms) loss.terms.push_back({term.mean, term.count});
    for (const NamedScalar& metric : result.metrics)
      loss.metrics.push_back({metric.name, metric.value, metric.weight});
    return loss;
  };
}

// Lengths and numbers of peaks grow with the row, and the last row of the batch is no spectrum.
std::map<std::string, Literal> ragged_batch(const std::vector<BatchField>& fields) {
  std::vector<std::vector<double>> values;
  for (const BatchField& field : fields)
    values.emplace_back(static_cast<size_t>(field.type.elements()));
  PhiloxStream draws(11);
  for (size_t b = 0; b + 1 < kBatch; ++b) {
    for (size_t p = 0; p < 8 + 4 * b; ++p) {
      values[0][b * kPeaks + p] = draws.uniform(60, 450);
      values[1][b * kPeaks + p] = draws.uniform(0.01, 1);
      values[2][b * kPeaks + p] = 1;
    }
    values[3][b] = draws.uniform(300, 700);
    values[4][b] = 2;
    const size_t length = 3 + b;
    for (size_t s = 0; s < length; ++s) {
      values[5][b * kSlots + s] = s == 0            ? kStart
                                  : s == length - 1 ? kEnd
                                                    : static_cast<double>(4 + draws.below(20));
      values[6][b * kSlots + s] = 1;
    }
  }
  values[7][0] = 0.7;
  values[8][0] = 0.3;
  std::map<std::string, Literal> batch;
  for (size_t i = 0; i < fields.size(); ++i)
    batch[fields[i].name] = literal(fields[i].type, values[i]);
  return batch;
}

// One step of plain descent by 1: what the parameters change by is the gradient.
std::map<std::string, Literal> step_of(const Variant& variant, const Microbatches& parts,
                                       bool passes) {
  const std::vector<BatchField> fields = spectrum_fields(kBatch, kPeaks, kSlots, true);
  OptimizerOptions options{.name = "sgd", .schedule = {"constant", 1, 0, 0, 1}};
  options.momentum = options.weight_decay = options.clip_norm = 0;
  const TracedStep step = trace_training_step(loss_of(variant), fields, options, parts);
  std::map<std::string, Literal> inputs = ragged_batch(fields);
  inputs.merge(initial_parameters(step.graph, step.initializers, 3));
  return interpret_by_name(passes ? run_passes(step.graph, Target()) : step.graph, inputs);
}

// `bound`: of differences, beside the largest element of each result.
void expect_same(const std::map<std::string, Literal>& parts,
                 const std::map<std::string, Literal>& whole, double bound) {
  ASSERT_EQ(parts.size(), whole.size());
  for (const auto& [name, value] : whole) {
    double largest = 1e-3;
    for (int64_t i = 0; i < value.elements(); ++i)
      largest = std::max(largest, std::abs(value.at(i)));
    for (int64_t i = 0; i < value.elements(); ++i)
      ASSERT_NEAR(parts.at(name).at(i), value.at(i), bound * largest) << name << " " << i;
  }
}

// All is evaluated in double but what the graph itself casts to f32: weights and the update.
constexpr double kRounding = 0x1p-23;

constexpr Variant kVariants[] = {
    {SpectrumTerm::window_huber},
    {SpectrumTerm::window_huber, PrecursorPenalty::log_ppm, /*mask_padding=*/false},
    {SpectrumTerm::window_l1, PrecursorPenalty::log_ppm},
    {SpectrumTerm::coverage},
    {SpectrumTerm::rendered}};

class AccumulatedObjective : public ::testing::TestWithParam<Variant> {};

TEST_P(AccumulatedObjective, IsThatOfTheWholeBatch) {
  const std::map<std::string, Literal> whole = step_of(GetParam(), {}, false);
  EXPECT_GT(whole.at("spectrum_loss").at(0), 1e-4) << "nothing to be weighted";
  EXPECT_GT(whole.at("precursor_loss").at(0), 1e-3);
  for (const Microbatches& parts : {Microbatches{2, 1}, Microbatches{6, 1}, Microbatches{2, 3}}) {
    SCOPED_TRACE(parts.accumulate * parts.parallel);
    expect_same(step_of(GetParam(), parts, false), whole, kRounding);
  }
  expect_same(step_of(GetParam(), {.accumulate = 3}, true), whole, kRounding);
  expect_same(step_of(GetParam(), {.parallel = 3}, true), whole, kRounding);
}

TEST_P(AccumulatedObjective, TakesTheWeightsOfItsTerms) {
  Variant slots_alone = GetParam();
  slots_alone.terms = false;
  const double whole = step_of(GetParam(), {}, false).at("loss").at(0);
  EXPECT_GT(std::abs(step_of(slots_alone, {.accumulate = 3}, false).at("loss").at(0) - whole),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(Variants, AccumulatedObjective, ::testing::ValuesIn(kVariants));

}  // namespace
}  // namespace fullbore::peptide

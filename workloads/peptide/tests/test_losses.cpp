#include "workloads/peptide/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/tests/traced.h"

namespace fullbore::peptide {
namespace {

using testing::literal;
using testing::reference_masses;

TEST(AnswerWeights, AreThoseOfTheReference) {
  const std::vector<double> exponential = answer_weights(AnswerWeights::exponential, 8);
  const double expected[] = {.012103, .019955, .032901, .054244,
                             .089433, .147450, .243104, .400810};
  for (size_t t = 0; t < 8; ++t) {
    EXPECT_NEAR(exponential[t], expected[t], 5e-7);
    EXPECT_NEAR(answer_weights(AnswerWeights::linear, 8)[t], static_cast<double>(t + 1) / 36,
                1e-15);
    EXPECT_NEAR(answer_weights(AnswerWeights::uniform, 8)[t], 0.125, 1e-15);
  }
}

// Logits t at the target and 0 elsewhere: CE_t = ln(e^t + 23) - t.
TEST(AnswerCrossEntropy, IsTheClosedFormOfSimpleLogits) {
  const struct {
    AnswerWeights weights;
    double plain, smoothed;
  } kExpected[] = {{AnswerWeights::linear, 0.5039945232, 0.9512167541},
                   {AnswerWeights::uniform, 1.0217934972, 1.3572101639},
                   {AnswerWeights::exponential, 0.2457129183, 0.7831237176}};
  constexpr int64_t kAnswers = 8, kSlots = 3, kSymbols = 24;
  Trace trace("losses", false);
  const TensorType type{DType::f32, {kAnswers, 1, kSlots, kSymbols}};
  const Tensor logits = trace.batch("logits", type);
  const Targets targets{trace.batch("ids", {DType::i32, {1, kSlots}}),
                        trace.batch("mask", {DType::boolean, {1, kSlots}})};
  trace.result("plain", answer_cross_entropy(logits, targets, 0));
  trace.result("smoothed", answer_cross_entropy(logits, targets, 0.1));
  std::vector<double> values(static_cast<size_t>(type.elements()));
  const std::vector<double> ids = {5, 23, 0};
  for (size_t t = 0; t < kAnswers; ++t)
    for (size_t s = 0; s < kSlots; ++s)
      values[(t * kSlots + s) * kSymbols + static_cast<size_t>(ids[s])] = static_cast<double>(t);
  const auto results = interpret_by_name(
      trace.finish(), {{"logits", literal(type, values)},
                       {"ids", literal({DType::i32, {1, kSlots}}, ids)},
                       {"mask", literal({DType::boolean, {1, kSlots}}, {1, 1, 0})}});
  for (const auto& expected : kExpected) {
    const std::vector<double> weights = answer_weights(expected.weights, kAnswers);
    double plain = 0, smoothed = 0;
    for (int64_t t = 0; t < kAnswers; ++t) {
      plain += weights[static_cast<size_t>(t)] * results.at("plain").at(t);
      smoothed += weights[static_cast<size_t>(t)] * results.at("smoothed").at(t);
    }
    EXPECT_NEAR(plain, expected.plain, 1e-7);
    EXPECT_NEAR(smoothed, expected.smoothed, 1e-7);
  }
}

/// Losses of a prediction, certain of a peptide (or of nothing), for the b and y ions of another.
struct Case {
  std::string predicted;  ///< empty: all symbols are equally likely
  std::string observed;
  double shift = 0;  ///< of the peaks, Da
  double intensity = 1;
  double precursor_error = 0;
};

std::map<std::string, Literal> losses(const Case& given) {
  const ResidueAlphabet alphabet;
  const std::vector<int32_t> truth = alphabet.ids(given.observed).take_or_throw();
  std::vector<double> mz, intensity;
  for (const Ion& ion : theoretical_ions(alphabet, truth)) {
    mz.push_back(ion.mz + given.shift);
    intensity.push_back(given.intensity);
  }
  const auto peaks = static_cast<int64_t>(mz.size());
  const auto slots = static_cast<int64_t>(truth.size()) + 3;  // one of padding
  std::vector<double> ids(static_cast<size_t>(slots)), mask(static_cast<size_t>(slots));
  ids[0] = kStart;
  for (size_t i = 0; i < truth.size(); ++i) ids[i + 1] = truth[i];
  ids[truth.size() + 1] = kEnd;
  for (size_t i = 0; i < truth.size() + 2; ++i) mask[i] = 1;
  std::vector<double> predicted = ids;
  const std::vector<int32_t> own =
      given.predicted.empty() ? truth : alphabet.ids(given.predicted).take_or_throw();
  for (size_t i = 1; i + 1 < predicted.size(); ++i)
    predicted[i] = i <= own.size() ? own[i - 1] : (i == own.size() + 1 ? kEnd : kPad);
  std::vector<double> probabilities(static_cast<size_t>(slots) * 24,
                                    given.predicted.empty() ? 1.0 / 24 : 0);
  if (!given.predicted.empty())
    for (size_t s = 0; s < predicted.size(); ++s)
      probabilities[s * 24 + static_cast<size_t>(predicted[s])] = 1;

  Trace trace("losses", false);
  const TensorType type{DType::f32, {1, slots, 24}};
  const Tensor p = trace.batch("probabilities", type);
  const Targets targets{trace.batch("ids", {DType::i32, {1, slots}}),
                        trace.batch("mask", {DType::boolean, {1, slots}})};
  const Observed observed{trace.batch("mz", {DType::f32, {1, peaks}}),
                          trace.batch("intensity", {DType::f32, {1, peaks}}),
                          trace.batch("peak_mask", {DType::boolean, {1, peaks}}),
                          trace.batch("mass", {DType::f32, {1}})};
  const LossMasses masses = reference_masses();
  const Tensor expected = expected_masses(p, targets, masses, true);
  trace.result("l1",
               window_loss(expected, observed, targets, masses, WindowPenalty::absolute).mean);
  trace.result("huber",
               window_loss(expected, observed, targets, masses, WindowPenalty::huber).mean);
  trace.result("coverage", coverage_loss(expected, observed, targets, masses, 0.2).mean);
  trace.result("rendered", rendered_loss(expected, observed, targets, masses, 0.2).mean);
  trace.result("precursor",
               precursor_loss(expected, observed, masses, PrecursorPenalty::smooth_l1).mean);
  const double mass = neutral_mass(alphabet, own) + given.precursor_error;
  return interpret_by_name(
      trace.finish(),
      {{"probabilities", literal(type, probabilities)},
       {"ids", literal({DType::i32, {1, slots}}, ids)},
       {"mask", literal({DType::boolean, {1, slots}}, mask)},
       {"mz", literal({DType::f32, {1, peaks}}, mz)},
       {"intensity", literal({DType::f32, {1, peaks}}, intensity)},
       {"peak_mask", literal({DType::boolean, {1, peaks}}, std::vector<double>(mz.size(), 1))},
       {"mass", literal({DType::f32, {1}}, {mass})}});
}

double loss_of(const Case& given, const char* name) { return losses(given).at(name).at(0); }

// The loss's masses are f32 constants: off by up to 1e-5 Da an ion.
constexpr double kRounding = 3e-5;

TEST(WindowLoss, MeasuresHowFarThePeaksAre) {
  const struct {
    Case given;
    double l1, huber;
  } kCases[] = {{{"PEPTIDE", "PEPTIDE"}, 0, 0},
                {{"PEPTIDE", "PEPTIDE", 0.1}, 0.1, 0.005},
                {{"PEPTIDE", "PEPTIDE", 0.3}, 0.3, 0.04},
                {{"PEPTIDE", "PEPTIDE", 0.6}, 0, 0},
                {{"PEPTIDE", "PEPTIDE", 0.1, 0.5}, 0.05, 0.0025},
                {{"LESLIEQ", "LESLIEK"}, 0.01819, 0.000330876},
                {{"SAMPLER", "PEPTIDE"}, 0, 0},
                {{"", "PEPTIDE"}, 0, 0}};
  for (const auto& [given, l1, huber] : kCases) {
    EXPECT_NEAR(loss_of(given, "l1"), l1, kRounding) << given.predicted << given.shift;
    EXPECT_NEAR(loss_of(given, "huber"), huber, kRounding) << given.predicted << given.shift;
  }
}

TEST(CoverageLoss, MeasuresWhatIsExplained) {
  EXPECT_NEAR(loss_of({"PEPTIDE", "PEPTIDE"}, "coverage"), 0, 1e-6);
  EXPECT_NEAR(loss_of({"PEPTIDE", "PEPTIDE", 0.2}, "coverage"), 0.3934693, 1e-4);
  EXPECT_NEAR(loss_of({"LESLIEQ", "LESLIEK"}, "coverage"), 0.0082039, 1e-5);
  EXPECT_NEAR(loss_of({"SAMPLER", "PEPTIDE"}, "coverage"), 1.0, 1e-6);
}

TEST(RenderedLoss, IsWithinZeroAndOne) {
  const double same = loss_of({"PEPTIDE", "PEPTIDE"}, "rendered");
  EXPECT_GT(same, 0) << "the ions of charge 2 have no peaks";
  EXPECT_LT(same, loss_of({"PEPTIDE", "PEPTIDE", 0.2}, "rendered"));
  EXPECT_NEAR(loss_of({"SAMPLER", "PEPTIDE"}, "rendered"), 1, 1e-3);
}

TEST(PrecursorLoss, IsSmoothNearTheMass) {
  for (const auto& [error, loss] :
       {std::pair{5.5, 0.0125}, {11.0, 0.05}, {110.0, 0.95}, {220.0, 1.95}})
    EXPECT_NEAR(loss_of({"PEPTIDE", "PEPTIDE", 0, 1, error}, "precursor"), loss, 1e-5);
}

// Rows without a peak within reach must not make NaN of a gradient.
TEST(Losses, SpectraWithoutPeaksHaveFiniteLossAndGradient) {
  constexpr int64_t kSlots = 6, kPeaks = 4;
  Trace trace("losses", false);
  const Tensor logits = trace.batch("logits", {DType::f32, {2, kSlots, 24}});
  const Targets targets{trace.batch("ids", {DType::i32, {2, kSlots}}),
                        trace.batch("mask", {DType::boolean, {2, kSlots}})};
  const Observed observed{trace.batch("mz", {DType::f32, {2, kPeaks}}),
                          trace.batch("intensity", {DType::f32, {2, kPeaks}}),
                          trace.batch("peak_mask", {DType::boolean, {2, kPeaks}}),
                          trace.batch("mass", {DType::f32, {2}})};
  const LossMasses masses = reference_masses();
  const Tensor expected = expected_masses(softmax(logits), targets, masses, true);
  const Tensor loss = window_loss(expected, observed, targets, masses, WindowPenalty::huber).mean +
                      coverage_loss(expected, observed, targets, masses, 0.2).mean +
                      rendered_loss(expected, observed, targets, masses, 0.2).mean +
                      precursor_loss(expected, observed, masses, PrecursorPenalty::log_ppm).mean;
  trace.result("loss", loss);
  const Tensor wanted[] = {logits};
  trace.result("gradient", gradient(loss, wanted)[0]);
  // Everything is zero: no peaks, no slots, no mass.
  const auto results = interpret_by_name(trace.finish(), {});
  EXPECT_TRUE(std::isfinite(results.at("loss").at(0)));
  for (int64_t i = 0; i < results.at("gradient").elements(); ++i)
    ASSERT_TRUE(std::isfinite(results.at("gradient").at(i))) << i;
}

}  // namespace
}  // namespace fullbore::peptide

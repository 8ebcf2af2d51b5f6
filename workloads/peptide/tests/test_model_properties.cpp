#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/peptide/losses.h"
#include "workloads/peptide/recursive_model.h"
#include "workloads/peptide/residues.h"
#include "workloads/peptide/tests/traced.h"

namespace fullbore::peptide {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using testing::initial_parameters;
using testing::literal;

constexpr ModelSizes kSmall{.width = 48,
                            .slots = 6,
                            .heads = 2,
                            .encoder_layers = 1,
                            .decoder_layers = 1,
                            .supervision_steps = 2,
                            .latent_steps = 2};

/// Spectra by row.
struct Rows {
  int64_t batch, peaks;
  std::vector<double> mz, intensity, mask, mass, charge;
};

Rows random_rows(int64_t batch, int64_t peaks, int64_t present, uint64_t seed) {
  Rows rows{batch, peaks, {}, {}, {}, {}, {}};
  PhiloxStream draws(seed);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t p = 0; p < peaks; ++p) {
      const bool there = p < present;
      rows.mz.push_back(there ? std::floor(draws.uniform(50, 900)) : 0);
      rows.intensity.push_back(there ? draws.uniform(0.01, 1) : 0);
      rows.mask.push_back(there ? 1 : 0);
    }
    rows.mass.push_back(draws.uniform(300, 900));
    rows.charge.push_back(static_cast<double>(1 + draws.below(4)));
  }
  return rows;
}

/// Logits [T,B,S,V] of the model as it begins.
Literal logits(const Rows& rows) {
  const ModelSizes& sizes = kSmall;
  Trace trace("model", false);
  const TensorType peaks{DType::f32, {rows.batch, rows.peaks}};
  const TensorType flags{DType::boolean, {rows.batch, rows.peaks}};
  const Spectra spectra{trace.batch("mz", peaks), trace.batch("intensity", peaks),
                        trace.batch("peak_mask", flags),
                        trace.batch("precursor_mass", {DType::f32, {rows.batch}}),
                        trace.batch("precursor_charge", {DType::i32, {rows.batch}})};
  trace.result("logits", recursive_model(trace, spectra, sizes).logits);
  const auto initializers = trace.initializers();
  const Graph graph = trace.finish();
  std::map<std::string, Literal> inputs = initial_parameters(graph, initializers, 7);
  inputs["mz"] = literal(peaks, rows.mz);
  inputs["intensity"] = literal(peaks, rows.intensity);
  inputs["peak_mask"] = literal(flags, rows.mask);
  inputs["precursor_mass"] = literal({DType::f32, {rows.batch}}, rows.mass);
  inputs["precursor_charge"] = literal({DType::i32, {rows.batch}}, rows.charge);
  return interpret_by_name(graph, inputs).at("logits");
}

void expect_near(const Literal& a, const Literal& b, double bound) {
  ASSERT_EQ(a.elements(), b.elements());
  for (int64_t i = 0; i < a.elements(); ++i) ASSERT_NEAR(a.at(i), b.at(i), bound) << i;
}

TEST(RecursiveModel, TheOrderOfPeaksDoesNotMatter) {
  const Rows rows = random_rows(2, 7, 7, 1);
  Rows reversed = rows;
  for (int64_t b = 0; b < 2; ++b) {
    const auto first = b * 7;
    std::reverse(reversed.mz.begin() + first, reversed.mz.begin() + first + 7);
    std::reverse(reversed.intensity.begin() + first, reversed.intensity.begin() + first + 7);
  }
  expect_near(logits(rows), logits(reversed), 1e-9);
}

TEST(RecursiveModel, PaddingAndItsContentsDoNotMatter) {
  const Rows trimmed = random_rows(1, 5, 5, 2);
  Rows padded = trimmed;
  padded.peaks = 9;
  for (int i = 0; i < 4; ++i) {
    padded.mz.push_back(100.0 * i);
    padded.intensity.push_back(0.5);
    padded.mask.push_back(0);
  }
  expect_near(logits(trimmed), logits(padded), 1e-9);
}

TEST(RecursiveModel, SpectraOfABatchDoNotSeeOneAnother) {
  const Rows both = random_rows(2, 5, 5, 3);
  Rows first = both;
  first.batch = 1;
  for (std::vector<double>* values : {&first.mz, &first.intensity, &first.mask}) values->resize(5);
  first.mass.resize(1);
  first.charge.resize(1);
  const Literal alone = logits(first);
  const Literal together = logits(both);
  const int64_t own = kSmall.slots * kSmall.symbols;
  for (int64_t t = 0; t < kSmall.supervision_steps; ++t)
    for (int64_t i = 0; i < own; ++i)
      ASSERT_NEAR(alone.at(t * own + i), together.at(2 * t * own + i), 1e-9);
}

// At the reference's size, on the CPU: the interpreter would take minutes.
double first_loss(uint64_t seed, bool head_of_zeros) {
  constexpr int64_t kBatch = 4, kPeaks = 18;
  const Rows rows = random_rows(kBatch, kPeaks, kPeaks, seed);
  TracedStep step;
  {
    Trace trace("model", false);
    const TensorType peaks{DType::f32, {kBatch, kPeaks}};
    const Spectra spectra{trace.batch("mz", peaks), trace.batch("intensity", peaks),
                          trace.batch("peak_mask", {DType::boolean, {kBatch, kPeaks}}),
                          trace.batch("precursor_mass", {DType::f32, {kBatch}}),
                          trace.batch("precursor_charge", {DType::i32, {kBatch}})};
    const ModelSizes reference;
    const Tensor logits = recursive_model(trace, spectra, reference).logits;
    // Any symbols: nothing is known of them yet.
    const Tensor ids =
        remainder(iota(trace.builder(), {DType::i32, {kBatch, reference.slots}}, 1), 24.0);
    const Targets targets{ids,
                          full(trace.builder(), {DType::boolean, {kBatch, reference.slots}}, 1)};
    trace.result("loss", reduce_mean(answer_cross_entropy(logits, targets, 0), {0}));
    step.initializers = trace.initializers();
    step.graph = trace.finish();
  }
  State state = initial_state(step, seed, cpu_device(2));
  if (head_of_zeros)
    for (const char* name : {"head.weight", "head.bias"})
      std::ranges::fill(Edited<float>(state, name), 0.0F);
  Program program = Program::compile(step.graph, state);
  const auto place = [](const auto& values, auto as) {
    using Type = decltype(as);
    auto* const memory =
        static_cast<Type*>(std::aligned_alloc(64, (values.size() * sizeof(Type) + 64) / 64 * 64));
    for (size_t i = 0; i < values.size(); ++i) memory[i] = static_cast<Type>(values[i]);
    return std::unique_ptr<void, void (*)(void*)>(memory, std::free);
  };
  const auto mz = place(rows.mz, float{}), intensity = place(rows.intensity, float{}),
             mask = place(rows.mask, uint8_t{}), mass = place(rows.mass, float{}),
             charge = place(rows.charge, int32_t{});
  const void* const batch[] = {mz.get(), intensity.get(), mask.get(), mass.get(), charge.get()};
  program.run(batch);
  return program.scalar("loss");
}

TEST(RecursiveModel, BeginsWithoutAnOpinion) {
  EXPECT_NEAR(first_loss(1, /*head_of_zeros=*/true), 3.178054, 1e-5);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const double loss = first_loss(seed, /*head_of_zeros=*/false);
    EXPECT_GT(loss, 3.2);
    EXPECT_LT(loss, 3.5);
  }
}

std::vector<double> embedded(double mass, int64_t channels, double longest) {
  Trace trace("embedding", false);
  const Tensor x = trace.batch("mass", {DType::f32, {1}});
  trace.result("y", mass_embedding(trace, "m", x, channels, longest));
  const Graph graph = trace.finish();
  const Literal y =
      interpret_by_name(
          graph, {{"mass", literal({DType::f32, {1}}, {mass})},
                  {"m.scale", literal({DType::f32, {channels}},
                                      std::vector<double>(static_cast<size_t>(channels), 1))}})
          .at("y");
  std::vector<double> values;
  for (int64_t i = 0; i < y.elements(); ++i) values.push_back(y.at(i));
  return values;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

TEST(MassEmbedding, HasTheValuesOfTheReference) {
  const std::vector<double> peak = embedded(147.11279, 224, 2000);
  const struct {
    size_t k;
    double sine, cosine, bound;
  } kPeak[] = {{0, .445890, .895088, 1e-4},
               {1, .484069, .875030, 1e-4},
               {50, .736375, -.676574, 1e-4},
               {111, .719873, .694106, 2e-2}};
  for (const auto& [k, sine, cosine, bound] : kPeak) {
    EXPECT_NEAR(peak[k], sine, bound) << k;
    EXPECT_NEAR(peak[112 + k], cosine, bound) << k;
  }
  const std::vector<double> precursor = embedded(799.35994, 240, 3000);
  EXPECT_NEAR(precursor[0], .994661, 1e-4);
  EXPECT_NEAR(precursor[120], -.103195, 1e-4);
  EXPECT_NEAR(precursor[119], .404439, 2e-2);
  EXPECT_NEAR(precursor[239], .914565, 2e-2);
}

// An embedding of long waves alone is blind: I and N would be 0.0082 apart.
TEST(MassEmbedding, TellsResiduesApart) {
  const auto at = [](double mass) { return embedded(mass, 224, 2000); };
  EXPECT_NEAR(distance(at(113.08406), at(114.04293)), 10.3082, 1e-2);
  EXPECT_NEAR(distance(at(128.09496), at(128.05858)), 5.0278, 1e-2);
}

}  // namespace
}  // namespace fullbore::peptide

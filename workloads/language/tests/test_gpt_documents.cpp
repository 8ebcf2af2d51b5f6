// Documents packed into rows, or padded to the length of a bucket, are learned from as if each were
// alone: losses and gradients of a batch are the means of the documents', weighted by predictions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/datasets.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/language/models.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

constexpr LanguageModelConfig kModel{
    .vocabulary = 11, .layers = 2, .heads = 2, .width = 16, .context = 12};
const std::vector<int64_t> kLengths = {3, 7, 5, 12, 2, 4, 1, 9};

struct Learned {
  double predictions = 0;
  double loss = 0;                                    ///< mean
  std::map<std::string, std::vector<double>> slopes;  ///< by parameter
};

std::vector<int32_t> document(size_t index) {
  PhiloxStream draws(9, index);
  std::vector<int32_t> tokens(static_cast<size_t>(kLengths[index]));
  for (int32_t& token : tokens) token = static_cast<int32_t>(draws.below(11));
  return tokens;
}

DatasetPtr documents() {
  return generate_examples({"tokens"}, kLengths.size(),
                           [](uint64_t index) { return Example{Array::of(document(index))}; });
}

/// Loss and gradients of one batch, whose first two tensors are inputs and targets, on the CPU. The
/// parameters are the same in every call.
Learned learn(const Example& batch, const std::vector<std::string>& names) {
  Trace trace("learn", true);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < names.size(); ++i) tensors.push_back(trace.batch(names[i], batch[i].type));
  const LanguageModelLoss loss =
      names.size() == 4
          ? gpt_packed_loss(trace, {tensors[0], tensors[2], tensors[3]}, tensors[1], kModel)
          : gpt_loss(trace, tensors[0], tensors[1], kModel);
  std::vector<Tensor> wanted;
  for (const Trace::Parameter& parameter : trace.parameters()) wanted.push_back(parameter.tensor);
  const std::vector<Tensor> slopes = gradient(loss.mean, wanted);
  for (size_t i = 0; i < slopes.size(); ++i)
    trace.result("slope " + trace.parameters()[i].name, slopes[i]);
  trace.result("loss", loss.mean);
  trace.result("predictions", loss.predictions);
  const std::vector<Trace::Parameter> parameters = trace.parameters();
  const auto initializers = trace.initializers();
  const TracedStep step{trace.finish(), initializers};

  State state = initial_state(step, 3, cpu_device(2));
  // Away from the start, where attention looks at everything alike and norms are the identity.
  for (size_t entry = 0; entry < state.entries().size(); ++entry) {
    if (state.entries()[entry].role != Role::parameter) continue;
    PhiloxStream draws(17, entry);
    for (float& value : Edited<float>(state, state.entries()[entry].name))
      value += static_cast<float>(0.3 * draws.normal());
  }
  Program program = Program::compile(step.graph, state);
  std::vector<std::unique_ptr<char, void (*)(void*)>> memory;
  std::vector<const void*> pointers;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t bytes = batch[i].bytes.size();
    memory.emplace_back(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)),
                        &std::free);
    std::memcpy(memory.back().get(), batch[i].bytes.data(), bytes);
    pointers.push_back(memory.back().get());
  }
  program.run(pointers);
  Learned learned{program.scalar("predictions"), program.scalar("loss"), {}};
  for (const Trace::Parameter& parameter : parameters) {
    const auto slope = program.read_result<float>(program.output("slope " + parameter.name));
    learned.slopes[parameter.name].assign(slope.begin(), slope.end());
  }
  return learned;
}

Example stacked(Example example) {
  for (Array& array : example) array.type.shape = array.type.shape.inserted(0, 1);
  return example;
}

/// The mean of what the documents teach, weighted by their predictions.
Learned alone() {
  Learned sum;
  for (size_t index = 0; index < kLengths.size(); ++index) {
    std::vector<int32_t> tokens = document(index);
    if (tokens.size() < 2) continue;
    const Array inputs = Array::of(std::span(tokens).first(tokens.size() - 1));
    const Array targets = Array::of(std::span(tokens).last(tokens.size() - 1));
    const Learned one = learn(stacked({inputs, targets}), {"inputs", "targets"});
    EXPECT_EQ(one.predictions, static_cast<double>(tokens.size() - 1));
    sum.predictions += one.predictions;
    sum.loss += one.loss * one.predictions;
    for (const auto& [name, values] : one.slopes) {
      std::vector<double>& total = sum.slopes[name];
      total.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) total[i] += values[i] * one.predictions;
    }
  }
  sum.loss /= sum.predictions;
  for (auto& [name, values] : sum.slopes)
    for (double& value : values) value /= sum.predictions;
  return sum;
}

/// To the rounding of sums of a few hundred f32 products.
void expect_same(const Learned& batch, const Learned& expected) {
  EXPECT_EQ(batch.predictions, expected.predictions);
  EXPECT_NEAR(batch.loss, expected.loss, 1e-6 * expected.loss);
  ASSERT_EQ(batch.slopes.size(), expected.slopes.size());
  for (const auto& [name, values] : expected.slopes) {
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 1e-4) << name << " learns nothing";
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(batch.slopes.at(name)[i], values[i], 1e-5 * largest) << name << "[" << i << "]";
  }
}

TEST(GptDocuments, PackedRowsTeachWhatEachDocumentAloneTeaches) {
  const DatasetPtr rows = pack_documents(documents(), {.length = 12, .cut_documents = false});
  ASSERT_LT(rows->size(), kLengths.size()) << "nothing shares a row";
  const Example batch = batch_examples(rows, static_cast<int64_t>(rows->size()))->get(0);
  expect_same(learn(batch, rows->names()), alone());
}

TEST(GptDocuments, WithoutSegmentsTheyWouldNot) {
  const DatasetPtr rows = pack_documents(documents(), {.length = 12, .cut_documents = false});
  const Example batch = batch_examples(rows, static_cast<int64_t>(rows->size()))->get(0);
  const Learned mixed = learn(batch, {"inputs", "targets"});
  EXPECT_GT(std::abs(mixed.loss - alone().loss), 1e-3);
}

TEST(GptDocuments, APaddedBucketTeachesWhatEachDocumentAloneTeaches) {
  const DatasetPtr batches =
      bucket_examples(cut_documents(documents(), 12),
                      {.lengths = {12}, .token_budget = 120, .epochs = 1, .padding = {0, -1}});
  ASSERT_EQ(batches->size(), 1U);
  Example batch = batches->get(0);
  batch.pop_back();  // lengths
  expect_same(learn(batch, {"inputs", "targets"}), alone());
}

TEST(GptDocuments, ABatchWithoutPredictionsTeachesNothing) {
  Array inputs(TensorType{DType::i32, {2, 4}});
  Array targets = inputs;
  std::ranges::fill(targets.tokens(), -1);
  const Learned nothing = learn({inputs, targets}, {"inputs", "targets"});
  EXPECT_EQ(nothing.predictions, 0);
  EXPECT_EQ(nothing.loss, 0);
  for (const auto& [name, values] : nothing.slopes)
    for (const double value : values) ASSERT_EQ(value, 0) << name;
}

}  // namespace
}  // namespace fullbore

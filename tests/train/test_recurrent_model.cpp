#include "fullbore/train/recurrent_model.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/device.h"
#include "tests/train/small_recurrent_model.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kTracks = 3;
constexpr int64_t kEpoch = 24;  // tokens of a sequence

int32_t token_at(int64_t sequence, int64_t place) {
  return static_cast<int32_t>((3 * sequence + 5 * place + place * place / 3) %
                              testing::kSequenceVocabulary);
}

/// Sequences of kEpoch tokens, as TokenSequences would cut them from a text.
class Sequences : public BatchSource {
 public:
  explicit Sequences(int64_t context, int64_t segments = 1)
      : context_(context), segments_(segments) {
    const TensorType tokens{DType::i32, {kTracks, context * segments}};
    fields_ = {
        {"inputs", tokens}, {"targets", tokens}, {"resets", {DType::boolean, {kTracks, segments}}}};
  }
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    const int64_t span = context_ * segments_;
    const int64_t begin = static_cast<int64_t>(position) * span % kEpoch;
    for (int64_t i = 0; i < kTracks * span; ++i) {
      static_cast<int32_t*>(buffers[0])[i] = token_at(i / span, begin + i % span);
      static_cast<int32_t*>(buffers[1])[i] = token_at(i / span, begin + i % span + 1);
    }
    for (int64_t i = 0; i < kTracks * segments_; ++i)
      static_cast<uint8_t*>(buffers[2])[i] = begin == 0 && i % segments_ == 0 ? 1 : 0;
  }

 private:
  int64_t context_, segments_;
  std::vector<BatchField> fields_;
};

OptimizerOptions optimizer(double learning_rate) {
  OptimizerOptions options;
  options.name = "sgd";
  options.momentum = 0;
  options.weight_decay = 0;
  options.clip_norm = 0;
  options.schedule = {"constant", learning_rate, 0, 0, 1};
  return options;
}

/// A step on batches of sequences, made as often as asked for.
class Stepper {
 public:
  Stepper(const LossFunction& loss, std::shared_ptr<const BatchSource> source, double learning_rate)
      : step_(trace_training_step(loss, source->fields(), optimizer(learning_rate))),
        state_(initial_state(step_, 3, cpu_device(1))),
        program_(Program::compile(step_.graph, state_)),
        loader_(std::move(source), {.workers = 0, .prefetch = 1}) {}

  double run() {
    program_.run(loader_.next());
    return program_.scalar("loss");
  }
  State& state() { return state_; }
  /// All parameters.
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const StateEntry& entry : state_.entries())
      if (entry.role == Role::parameter)
        std::ranges::copy(state_.read<float>(entry.name), std::back_inserter(all));
    return all;
  }

 private:
  TracedStep step_;
  State state_;
  Program program_;
  Loader loader_;
};

LossFunction small_loss(InitialState initial, int64_t segments = 1) {
  return tbptt_loss(testing::SmallRecurrentModel::model(),
                    {.initial = initial, .segments = segments});
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

TEST(Sequences, CarriedSegmentsAreOneLongSegment) {
  Stepper whole(small_loss(InitialState::zero), std::make_shared<Sequences>(kEpoch), 0);
  Stepper carried(small_loss(InitialState::carry), std::make_shared<Sequences>(6), 0);
  Stepper forgotten(small_loss(InitialState::zero), std::make_shared<Sequences>(6), 0);
  const double expected = whole.run();
  for (int epoch = 0; epoch < 2; ++epoch) {  // the second one begins anew
    double sum = 0;
    double cut = 0;
    for (int i = 0; i < 4; ++i) {
      sum += carried.run();
      cut += forgotten.run();
    }
    EXPECT_NEAR(sum / 4, expected, 1e-6) << epoch;
    EXPECT_GT(std::abs(cut / 4 - expected), 1e-4) << "the model has to remember something";
  }
  EXPECT_LT(forgotten.state().find("streams.memory"), 0) << "nothing is kept in vain";
}

// Gradients go through the borders of segments in a batch as if there were none, and stop at those of batches.
TEST(Sequences, SegmentsOfABatchAreDifferentiatedTogether) {
  Stepper whole(small_loss(InitialState::zero), std::make_shared<Sequences>(12), 0.1);
  Stepper together(small_loss(InitialState::carry, 3), std::make_shared<Sequences>(4, 3), 0.1);
  const std::vector<float> before = whole.parameters();
  EXPECT_NEAR(whole.run(), together.run(), 1e-6);
  const double learned = largest_difference(whole.parameters(), before);
  EXPECT_GT(learned, 1e-3);
  EXPECT_LT(largest_difference(whole.parameters(), together.parameters()), 1e-5 * learned + 1e-6);
  Stepper apart(small_loss(InitialState::carry), std::make_shared<Sequences>(4), 0);
  Stepper alone(small_loss(InitialState::carry, 3), std::make_shared<Sequences>(4, 3), 0);
  EXPECT_NEAR((apart.run() + apart.run() + apart.run()) / 3, alone.run(), 1e-6);
}

// A model whose state is what its first token says, and whose loss tells the state that it was given.
RecurrentModel teller(int64_t width) {
  RecurrentModel model;
  model.states = [width](int64_t sequences) {
    return std::vector<RecurrentTensor>{{"told", {DType::f32, {sequences, width}}}};
  };
  model.loss = [width](Trace& trace, std::span<const Tensor> batch,
                       std::span<const Tensor> before) {
    const Tensor weight = trace.parameter("weight", {1}, Initializer::zeros());
    const Tensor first = cast(slice(batch[0], 1, 0, 1), DType::f32);
    const int64_t sequences = first.dim(0);
    if (before.empty())
      return SegmentLoss{reduce_sum(weight, {0}), {broadcast_to(first, {sequences, width})}};
    const Tensor place = iota(trace.builder(), {DType::i32, {sequences, 1}}, 0);
    const Tensor digit = pow(full(trace.builder(), {DType::f32, {}}, 100), cast(place, DType::f32));
    const Tensor told = width == 1 ? reduce_sum(before[0] * digit, {0, 1})
                                   : reduce_mean(before[0] * before[0], {0, 1});
    return SegmentLoss{told + reduce_sum(weight, {0}), {broadcast_to(first, {sequences, width})}};
  };
  return model;
}

/// Sequence r begins each segment with r + 1.
class Numbered : public BatchSource {
 public:
  explicit Numbered(std::vector<uint8_t> resets) : resets_(std::move(resets)) {}
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    for (int32_t i = 0; i < 4; ++i) {
      static_cast<int32_t*>(buffers[0])[i] = i + 1;
      static_cast<int32_t*>(buffers[1])[i] = 0;
      static_cast<uint8_t*>(buffers[2])[i] = position == 0 ? 1 : resets_[static_cast<size_t>(i)];
    }
  }

 private:
  std::vector<uint8_t> resets_;
  std::vector<BatchField> fields_ = {{"inputs", {DType::i32, {4, 1}}},
                                     {"targets", {DType::i32, {4, 1}}},
                                     {"resets", {DType::boolean, {4, 1}}}};
};

TEST(Sequences, BeginAnewWhereABatchSaysSo) {
  const LossFunction loss = tbptt_loss(teller(1), {.initial = InitialState::carry});
  Stepper stepper(loss, std::make_shared<Numbered>(std::vector<uint8_t>{0, 1, 0, 0}), 0);
  EXPECT_EQ(stepper.run(), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stepper.run(), 1 + 3e4 + 4e6);
}

TEST(Sequences, ShuffledStatesAreThoseOfOtherTracks) {
  const LossFunction loss = tbptt_loss(teller(1), {.initial = InitialState::shuffled});
  Stepper stepper(loss, std::make_shared<Numbered>(std::vector<uint8_t>(4, 0)), 0);
  EXPECT_EQ(stepper.run(), 0);
  std::set<int64_t> turns;
  for (int i = 0; i < 40; ++i) {
    auto told = static_cast<int64_t>(stepper.run());
    turns.insert(told);
    std::set<int64_t> states;
    for (int64_t sequence = 1; sequence <= 4; ++sequence, told /= 100) {
      EXPECT_NE(told % 100, sequence);
      states.insert(told % 100);
    }
    EXPECT_EQ(states, (std::set<int64_t>{1, 2, 3, 4}));
  }
  EXPECT_EQ(turns.size(), 3U) << "each of the three turns was drawn";
}

TEST(Sequences, NoiseIsAsLargeAsWhatBatchesLeaveBehind) {
  const TbpttOptions options{.initial = InitialState::noise, .noise = 2};
  Stepper stepper(tbptt_loss(teller(4096), options),
                  std::make_shared<Numbered>(std::vector<uint8_t>(4, 0)), 0);
  EXPECT_EQ(stepper.run(), 0) << "nothing was left behind yet";
  const double expected = 4 * (1 + 4 + 9 + 16) / 4.0;
  // The mean of n squares of normal draws has the relative deviation sqrt(2 / n).
  const double bound = 5 * expected * std::sqrt(2.0 / (4 * 4096));
  const double first = stepper.run();
  const double second = stepper.run();
  EXPECT_NEAR(first, expected, bound);
  EXPECT_NEAR(second, expected, bound);
  EXPECT_NE(first, second);
}

TEST(Sequences, InitialStatesCanBeLearned) {
  const TbpttOptions options{.initial = InitialState::carry, .trainable = true};
  const LossFunction loss = tbptt_loss(testing::SmallRecurrentModel::model(), options);
  Stepper stepper(loss, std::make_shared<Sequences>(6), 0.1);
  for (const char* name : {"previous", "memory", "history", "state_space"})
    EXPECT_THAT(stepper.state().read<float>(std::string("initial.") + name), Each(0.0F));
  stepper.run();
  for (const char* name : {"previous", "memory", "history", "state_space"})
    EXPECT_THAT(stepper.state().read<float>(std::string("initial.") + name),
                ::testing::Contains(::testing::Ne(0.0F)))
        << name;
}

TEST(Sequences, ASkippedStepLeavesThemAsTheyWere) {
  const LossFunction told = tbptt_loss(teller(1), {.initial = InitialState::carry});
  const LossFunction loss = [&](Trace& trace, std::span<const Tensor> batch) {
    Loss value = told(trace, batch);
    value.mean = value.mean / value.mean;  // 0 / 0 at first
    return value;
  };
  Stepper stepper(loss, std::make_shared<Numbered>(std::vector<uint8_t>(4, 0)), 0);
  EXPECT_TRUE(std::isnan(stepper.run()));
  EXPECT_THAT(stepper.state().read<float>("streams.told"), Each(0.0F));
}

TEST(Sequences, AreNotCutInMicrobatches) {
  const LossFunction loss = small_loss(InitialState::carry);
  const std::vector<BatchField> fields = Sequences(6).fields();
  try {
    trace_training_step(loss, fields, optimizer(0.1), {.accumulate = kTracks});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a batch in microbatches: the model updates State"));
  }
  OptimizerOptions halves = optimizer(0.1);
  halves.noise_scale = true;
  const auto even = std::vector<BatchField>{{"inputs", {DType::i32, {4, 6}}},
                                            {"targets", {DType::i32, {4, 6}}},
                                            {"resets", {DType::boolean, {4, 1}}}};
  EXPECT_THROW(trace_training_step(loss, even, halves), UsageError);
}

TEST(Sequences, ModesAreNamed) {
  EXPECT_EQ(initial_state_mode("carry-k"), InitialState::carry);
  EXPECT_THROW(initial_state_mode("cary"), UsageError);
}

TEST(Sequences, AnEvaluationBeginsAnewAndCarries) {
  Stepper stepper(small_loss(InitialState::carry), std::make_shared<Sequences>(6), 0);
  stepper.run();
  const auto memory = stepper.state().read<float>("streams.memory");
  const std::vector<float> before(memory.begin(), memory.end());
  EXPECT_THAT(before, ::testing::Contains(::testing::Ne(0.0F)));
  ValidationSet set;
  set.source = std::make_shared<Sequences>(6);
  set.batches = 4;
  Evaluator evaluator(small_loss(InitialState::carry), set, stepper.state(), {});
  const auto go_on = [](uint64_t) { return true; };
  const double loss = evaluator.evaluate(go_on)->loss;
  EXPECT_EQ(evaluator.evaluate(go_on)->loss, loss) << "the same bits again";
  Stepper whole(small_loss(InitialState::zero), std::make_shared<Sequences>(kEpoch), 0);
  EXPECT_NEAR(loss, whole.run(), 1e-6);
  EXPECT_EQ(before, std::vector<float>(memory.begin(), memory.end()));
}

/// Whole runs.
class TbpttTraining : public TrainerTest {
 protected:
  TbpttTraining() {
    job_.training = std::make_shared<Sequences>(6);
    job_.validation = ValidationSet{job_.training, 2};
    job_.tokens_per_step = kTracks * 6;
    job_.options.steps = 11;  // two epochs and three quarters
    job_.options.evaluation_interval = 5;
    job_.options.checkpoint_interval = 5;
    job_.options.optimizer.schedule.learning_rate = 0.01;
  }
  std::pair<uint64_t, uint64_t> tensors(const std::string& run) const {
    const CheckpointFolder folder = open_checkpoint(folder_ / (run + "/checkpoints/last")).folder;
    return {folder.manifest().at("weights.safetensors").hash,
            folder.manifest().at("optimizer.safetensors").hash};
  }
};

TEST_F(TbpttTraining, ResumesToTheSameBits) {
  for (const InitialState mode :
       {InitialState::carry, InitialState::noise, InitialState::shuffled}) {
    job_.loss = small_loss(mode);
    job_.options.steps = 11;
    const std::string name = std::to_string(static_cast<int>(mode));
    ASSERT_EQ(train_in("whole" + name), ExitCode::kOk);
    job_.options.steps = 3;  // amid an epoch
    ASSERT_EQ(train_in("parts" + name), ExitCode::kOk);
    job_.options.steps = 11;
    ASSERT_EQ(train_in("parts" + name, true), ExitCode::kOk);
    EXPECT_TRUE(last("whole" + name) == last("parts" + name)) << name;
  }
}

TEST_F(TbpttTraining, EvaluationDisturbsNothing) {
  job_.loss = small_loss(InitialState::carry);
  ASSERT_EQ(train_in("often"), ExitCode::kOk);
  job_.options.evaluation_interval = 1;
  job_.options.log_interval = 1;
  ASSERT_EQ(train_in("always"), ExitCode::kOk);
  job_.validation.reset();
  ASSERT_EQ(train_in("never"), ExitCode::kOk);
  EXPECT_EQ(tensors("often"), tensors("never"));
  EXPECT_EQ(tensors("always"), tensors("never"));
}

}  // namespace
}  // namespace fullbore

// A step that is not finite leaves all State as it was, whatever of it the model, the optimizer or the loss's scale writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/nn/image_layers.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "tests/train/batch_of_rows.h"

namespace fullbore {
namespace {

using testing_support::Batch;
using testing_support::batch_of;
using testing_support::cpu_device;
using testing_support::kFields;
using testing_support::kRows;
using testing_support::kWidth;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Each makes loss or gradients not finite: in the forward pass, in the statistics of a batch, after them.
std::vector<Batch> bad_batches() {
  std::vector<Batch> bad(4, batch_of(99));
  bad[0].x[5] = kNan;
  bad[1].x[kRows * kWidth - 1] = -kInfinity;
  bad[2].y[2] = kNan;
  bad[3].y[kRows - 1] = 1e25F;
  return bad;
}

// Loss and gradients of plain() are finite, their norm is not, by which clipping would divide.
Batch batch_of_infinite_norm() {
  Batch bad = batch_of(99);
  std::fill_n(bad.x + 3 * kWidth, kWidth, 1e3F);
  bad.y[3] = 1e19F;
  return bad;
}

Tensor error_of(Tensor rows, Tensor y) {
  const Tensor error = reduce_sum(rows, {1}) - y;
  return reduce_mean(error * error, {0});
}

Tensor mixed(Trace& trace, std::span<const Tensor> batch) {
  return matmul(batch[0], trace.parameter("weight", {kWidth, kWidth}, Initializer::normal(0.5)));
}

Loss plain(Trace& trace, std::span<const Tensor> batch) {
  return error_of(mixed(trace, batch), batch[1]);
}

// Statistics of the batch, and State that the model writes by itself.
Loss normalized(Trace& trace, std::span<const Tensor> batch) {
  const Tensor largest =
      trace.state("largest", Role::control, {DType::f32, {}}, Initializer::zeros());
  trace.update(largest, maximum(largest, reduce_max(batch[1] * batch[1], {0})));
  return error_of(nn::batch_norm(trace, "norm", mixed(trace, batch)), batch[1]);
}

struct Case {
  std::string name;
  bool normalizes = false;
  Microbatches microbatches = {};
  double loss_scale = 0;
  double clip_norm = 1;
  StorageOptions storage = {};
};

/// A program with State of its own.
class TrainedRun {
 public:
  explicit TrainedRun(const Case& test)
      : step_(trace_training_step(test.normalizes ? normalized : plain, kFields,
                                  {.schedule = {"constant", 0.05, 0, 0, 1},
                                   .clip_norm = test.clip_norm,
                                   .ema_decay = 0.9,
                                   .loss_scaling = {.initial = test.loss_scale, .interval = 3},
                                   .storage = test.storage},
                                  test.microbatches)),
        state_(initial_state(step_, 7, cpu_device(2))),
        program_(Program::compile(step_.graph, state_)) {}

  /// The result `skipped`.
  double train(const Batch& batch) {
    const void* const pointers[] = {batch.x, batch.y};
    program_.run(pointers);
    return program_.scalar("skipped");
  }

  double control(const char* name) const {
    const int entry = state_.find(name);
    std::vector<std::byte> bytes(
        static_cast<size_t>(state_.entries()[static_cast<size_t>(entry)].type.bytes()));
    state_.read(entry, bytes);
    return load_element(bytes.data(), state_.entries()[static_cast<size_t>(entry)].type.dtype, 0);
  }

  /// By name, but what counts replays or follows the scale.
  std::map<std::string, std::vector<std::byte>> kept() const {
    std::map<std::string, std::vector<std::byte>> result;
    for (size_t i = 0; i < state_.entries().size(); ++i) {
      const StateEntry& entry = state_.entries()[i];
      if (entry.name == "step" || entry.name == "loss_scale" || entry.name == "finite_steps")
        continue;
      std::vector<std::byte>& bytes = result[entry.name];
      bytes.resize(static_cast<size_t>(entry.type.bytes()));
      state_.read(static_cast<int>(i), bytes);
    }
    return result;
  }

 private:
  TracedStep step_;
  State state_;
  Program program_;
};

class SkippedSteps : public testing::TestWithParam<Case> {};

TEST_P(SkippedSteps, LeaveAllStateAsItWas) {
  TrainedRun undisturbed(GetParam());
  TrainedRun disturbed(GetParam());
  double replays = 0;
  double scale = GetParam().loss_scale;
  for (uint64_t position = 0; position < 3; ++position) {
    EXPECT_EQ(undisturbed.train(batch_of(position)), 0);
    const auto before = disturbed.kept();
    EXPECT_EQ(disturbed.train(batch_of(position)), 0);
    ++replays;
    EXPECT_TRUE(disturbed.kept() != before) << "a step that counts";
    const auto after = disturbed.kept();
    EXPECT_TRUE(after == undisturbed.kept()) << "bad batches in between leave no trace";
    std::vector<Batch> all_bad = bad_batches();
    if (!GetParam().normalizes) all_bad.push_back(batch_of_infinite_norm());
    for (const Batch& bad : all_bad) {
      ASSERT_EQ(disturbed.train(bad), 1);
      ++replays;
      for (const auto& [name, bytes] : disturbed.kept())
        EXPECT_TRUE(bytes == after.at(name)) << name << " at step " << position;
      scale = std::max(scale / 2, 1.0);
      if (GetParam().loss_scale > 0) {
        EXPECT_EQ(disturbed.control("loss_scale"), scale)
            << "halves once a step, however it is cut";
        EXPECT_EQ(disturbed.control("finite_steps"), 0);
      }
    }
    EXPECT_EQ(disturbed.control("step"), replays);
    EXPECT_EQ(disturbed.control("updates"), static_cast<double>(position + 1));
  }
}

const StorageOptions kNarrow{.moments = "bf16", .master_weights = false, .stochastic = false};

INSTANTIATE_TEST_SUITE_P(
    Train, SkippedSteps,
    testing::Values(Case{"statistics", true}, Case{"unclipped", true, {}, 0, 0},
                    Case{"accumulated_statistics", true, {.accumulate = 3}},
                    Case{"scaled_statistics", true, {.accumulate = 2}, 0x1p40},
                    Case{"narrow_statistics", true, {}, 0, 1, kNarrow},
                    Case{"plain", false, {}, 0x1p40},
                    Case{"accumulated", false, {.accumulate = 4}, 0x1p40},
                    Case{"side_by_side", false, {.accumulate = 2, .parallel = 2}, 0x1p40},
                    Case{"narrow", false, {.accumulate = 2}, 0, 1, kNarrow}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace fullbore

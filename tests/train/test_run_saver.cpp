// What a save holds, whatever was zero before.
#include "fullbore/train/run_saver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/train/run_checkpoints.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

// Three and a bit of the blocks that a snapshot is taken by.
constexpr int64_t kElements = (7 << 18) + 5;

State two_tensors() {
  return State({{"weight", Role::parameter, {DType::f32, {kElements}}},
                {"weight.m", Role::moment, {DType::f32, {kElements}}}},
               cpu_device(3));
}

std::vector<float> all_of(const State& state) {
  std::vector<float> values;
  for (const char* name : {"weight", "weight.m"})
    std::ranges::copy(state.read<float>(name), std::back_inserter(values));
  return values;
}

std::vector<float> saved(const std::string& checkpoint) {
  State state = two_tensors();
  restore(open_checkpoint(checkpoint).folder, tensor_slots(state), UnknownTensors::kIgnore)
      .take_or_throw();
  return all_of(state);
}

class RunSaverWays : public ::testing::TestWithParam<bool> {
 protected:
  testing::ScratchFolder folder_;
};

TEST_P(RunSaverWays, EverySaveHoldsTheStateOfItsTime) {
  CheckpointStore store(folder_.path(), 0);
  State state = two_tensors();
  RunSaver saver(store, state, {.retention = 0, .background = GetParam()});
  const auto save = [&](int64_t step) {
    RunRecord record;
    record.step = step;
    saver.save(record, false, {});
    std::vector<float> then = all_of(state);
    // While it is written the run goes on.
    if (GetParam()) Edited<float>(state, "weight")[1] += 1;
    return then;
  };
  // Mostly zeros: whole blocks of them before, between and after.
  Edited<float>(state, "weight")[600'000] = 1;
  Edited<float>(state, "weight.m")[kElements - 1] = 2;
  const std::vector<float> first = save(1);
  // What was zero is not, and the reverse.
  std::ranges::fill(Edited<float>(state, "weight.m"), 3.0F);
  std::ranges::fill(Edited<float>(state, "weight"), 0.0F);
  const std::vector<float> second = save(2);
  std::ranges::fill(Edited<float>(state, "weight.m"), 0.0F);
  const std::vector<float> third = save(3);
  saver.finish();
  EXPECT_EQ(saver.saves(), 3);
  EXPECT_TRUE(saved(folder_ / "step-00000001") == first);
  EXPECT_TRUE(saved(folder_ / "step-00000002") == second);
  EXPECT_TRUE(saved(folder_ / "step-00000003") == third);
}

RunRecord at_step(int64_t step) {
  RunRecord record;
  record.step = step;
  return record;
}

// As after the evaluation before the first step: a large save would hold up the step.
TEST(RunSaverTest, ASaveOfTheSameStateDoesNotWaitForTheOneBefore) {
  const testing::ScratchFolder folder;
  CheckpointStore store(folder.path(), 0);
  State state = two_tensors();
  Edited<float>(state, "weight")[7] = 1;
  const std::vector<float> beginning = all_of(state);
  RunSaver saver(store, state, {.retention = 0});
  std::promise<void> returned;
  // Fails where the second save() waits for this one.
  saver.save(at_step(1), false, [&]() -> Status {
    if (returned.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready)
      return success();
    return Failure{"nobody comes"};
  });
  saver.save(at_step(2), true, {});
  returned.set_value();
  Edited<float>(state, "weight")[7] = 2;
  saver.save(at_step(3), false, {});
  const std::vector<float> later = all_of(state);
  saver.finish();
  EXPECT_TRUE(saved(folder / "step-00000001") == beginning);
  EXPECT_TRUE(saved(folder / "step-00000002") == beginning);
  EXPECT_TRUE(saved(folder / "step-00000003") == later);
  EXPECT_EQ(std::filesystem::read_symlink(folder / "best"), "step-00000002");
}

TEST(RunSaverTest, WhatIsQueuedBehindAFailureIsNotWritten) {
  const testing::ScratchFolder folder;
  CheckpointStore store(folder.path(), 0);
  State state = two_tensors();
  RunSaver saver(store, state, {.retention = 0});
  std::promise<void> queued;
  saver.save(at_step(1), false, [&]() -> Status {
    queued.get_future().wait();
    return Failure{"no more room"};
  });
  saver.save(at_step(2), false, {});
  queued.set_value();
  EXPECT_THROW(saver.finish(), DataError);
  EXPECT_TRUE(store.list().take_or_throw().empty());
  saver.save(at_step(3), false, {});  // there is room again
  saver.finish();
  EXPECT_EQ(store.list().take_or_throw(), std::vector<std::string>{folder / "step-00000003"});
}

INSTANTIATE_TEST_SUITE_P(Both, RunSaverWays, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Background" : "AtOnce"; });

}  // namespace
}  // namespace fullbore

// What a save holds, whatever was zero before.
#include "fullbore/train/run_saver.h"

#include <gtest/gtest.h>

#include <algorithm>
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

class RunSaverTest : public ::testing::TestWithParam<bool> {
 protected:
  std::vector<float> saved(const std::string& checkpoint) const {
    State state = two_tensors();
    restore(open_checkpoint(folder_ / checkpoint).folder, tensor_slots(state),
            UnknownTensors::kIgnore)
        .take_or_throw();
    return all_of(state);
  }
  testing::ScratchFolder folder_;
};

TEST_P(RunSaverTest, EverySaveHoldsTheStateOfItsTime) {
  CheckpointStore store(folder_.path(), 0);
  State state = two_tensors();
  RunSaver saver(store, state, {.keep = 0, .background = GetParam()});
  const auto save = [&](int64_t step) {
    RunRecord record;
    record.step = step;
    saver.save(record, false, {});
    const std::vector<float> then = all_of(state);
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
  EXPECT_TRUE(saved("step-00000001") == first);
  EXPECT_TRUE(saved("step-00000002") == second);
  EXPECT_TRUE(saved("step-00000003") == third);
}

// The first step may have changed the State before its first values are even drawn.
TEST_P(RunSaverTest, TheFirstSaveHoldsTheStateOfTheBeginning) {
  CheckpointStore store(folder_.path(), 0);
  State state = two_tensors();
  const auto draw = [](const std::string& name, const TensorType& type, void* zeroed) {
    if (name != "weight") return;
    auto* const values = static_cast<float*>(zeroed);
    for (int64_t i = 0; i < type.elements(); ++i) values[i] = static_cast<float>(i % 1000) - 3;
  };
  std::vector<float> first(kElements);
  draw("weight", state.entries()[0].type, first.data());
  state.write("weight", first);
  const std::vector<float> beginning = all_of(state);
  std::promise<void> stepped;
  RunSaver saver(store, state, {.keep = 0, .background = GetParam()});
  if (!GetParam()) stepped.set_value();
  saver.save_initial({}, [&](const std::string& name, const TensorType& type, void* zeroed) {
    if (name == "weight") stepped.get_future().wait();
    draw(name, type, zeroed);
  });
  std::ranges::fill(Edited<float>(state, "weight.m"), 3.0F);
  std::ranges::fill(Edited<float>(state, "weight"), 5.0F);
  if (GetParam()) stepped.set_value();
  saver.finish();
  const std::vector<float> later = all_of(state);
  RunRecord record;
  record.step = 1;
  saver.save(record, false, {});
  saver.finish();
  EXPECT_TRUE(saved("step-00000000") == beginning);
  EXPECT_TRUE(saved("step-00000001") == later);
}

INSTANTIATE_TEST_SUITE_P(Ways, RunSaverTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Background" : "AtOnce"; });

}  // namespace
}  // namespace fullbore

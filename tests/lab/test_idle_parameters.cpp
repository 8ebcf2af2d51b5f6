#include "fullbore/lab/diagnosis/idle_parameters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fullbore/device/registry.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using Names = std::vector<std::string>;

const TensorType kPair = {DType::f32, {2}};

/// Of "moving" one moment of two is not 0, of "still" both are, "plain" has none, and "frozen" is not trained.
State some_state() {
  std::vector<StateEntry> entries;
  for (const char* name : {"moving", "still", "plain"})
    entries.push_back({name, Role::parameter, kPair});
  entries.push_back({"frozen", Role::frozen, kPair});
  for (const char* name :
       {"moving.moment1", "moving.moment2", "still.moment1", "still.moment2", "frozen.moment1"})
    entries.push_back({name, Role::moment, kPair});
  State state(std::move(entries), open_device("cpu", 1));
  state.write<float>("still", {1, 2});
  state.write<float>("moving.moment2", {0, 1e-30F});
  return state;
}

TEST(IdleParameters, HaveNoMomentThatMoved) {
  EXPECT_EQ(idle_parameters(some_state()), Names{"still"});
}

TEST(IdleParameters, AreToldOfACheckpointToo) {
  const testing::ScratchFolder folder;
  const std::vector<float> zeros = {0, 0};
  const std::vector<float> small = {0, 1e-30F};
  CheckpointContents contents;
  contents.groups = {{"weights", {{"moving", kPair, small.data()}, {"still", kPair, small.data()}}},
                     {"averages", {{"still", kPair, small.data()}}},
                     {"moments",
                      {{"moving.moment1", kPair, zeros.data()},
                       {"moving.moment2", kPair, small.data()},
                       {"still.moment1", kPair, zeros.data()}}}};
  write_checkpoint_folder(folder / "step-1", contents).take_or_throw();
  const CheckpointFolder checkpoint = open_checkpoint_folder(folder / "step-1").take_or_throw();
  EXPECT_EQ(idle_parameters(checkpoint).take_or_throw(), Names{"still"});
}

}  // namespace
}  // namespace fullbore

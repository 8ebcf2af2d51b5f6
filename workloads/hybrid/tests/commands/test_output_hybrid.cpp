#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/output_rows.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

const OutputRows& rows() {
  static const OutputRows all = {
      {"generate --state-out",
       {{"generate", "streams", "--characters", "3", "--state-out", "kept.state"},
        true,
        {"kept.state"}}},
  };
  return all;
}

constexpr const char* kRecurrentConfig =
    "data: {tokenizer: recorded, batching: sequences, split: sequences, validation_fraction: 0.2,\n"
    "  initial_state: carry}\n"
    "model: {name: hybrid, layers: 1, heads: 2, width: 16, context: 8, inner: 32,\n"
    "  mamba_heads: 2, states: 4, hidden: 32, mix_rank: 4, decay_rank: 4, chunk: 8}\n"
    "train: {steps: 1, batch_size: 4, eval_batches: 1, sample_characters: 0}\n";

class HybridOutput : public OutputRowsTest {
 protected:
  HybridOutput() : OutputRowsTest(rows()) { folder_.put("streams.yaml", kRecurrentConfig); }
  void prepare() override {
    const CommandResult streams =
        command({"train", "streams.yaml", "data.path=text.txt", "run.dir=streams"});
    ASSERT_EQ(streams.exit_code, 0) << streams.err;
  }
};

TEST_F(HybridOutput, OfAFullDeviceIsExitCode3AndNamed) { expect_full_device_named(); }

TEST_F(HybridOutput, OfAClosedPipeEndsTheCommandWithoutAWord) {
  expect_closed_pipe_ends_without_a_word();
}

TEST_F(HybridOutput, OfAClosedDescriptorIsExitCode3AndNamed) { expect_closed_descriptor_named(); }

TEST_F(HybridOutput, OfAFullDiskIsExitCode3AndNamesTheFile) { expect_full_disk_named(); }

}  // namespace
}  // namespace fullbore

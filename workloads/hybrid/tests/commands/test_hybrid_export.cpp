#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class HybridExport : public JobTest {
 protected:
  double loss(const std::string& model) const {
    const CommandResult result = command({"eval", model, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out)["loss"];
  }
  DType dtype_of(const std::string& folder, const std::string& tensor) const {
    const CheckpointFolder checkpoint =
        open_checkpoint_folder(folder_.path() + "/" + folder).take_or_throw();
    const Checkpoint weights = checkpoint.group("weights").take_or_throw();
    const StoredTensor* found = weights.find(tensor);
    EXPECT_TRUE(found) << tensor;
    return found ? found->type.dtype : DType::boolean;
  }
};

// The projections of both branches and the feed-forward layers; neither what has a low rank nor gates of fusion.
TEST_F(HybridExport, AHybridModelIsExportedWithoutACodeOfItsOwn) {
  for (const char* fusion : {"gains", "channel_gate"}) {
    const std::string run = std::string("run-") + fusion, small = std::string("small-") + fusion;
    const CommandResult trained =
        train({"model.name=hybrid", "model.layers=2", "model.context=16", "model.mix_rank=8",
               "model.decay_rank=8", "model.inner=32", "model.mamba_heads=2", "model.states=8",
               "model.hidden=32", "model.chunk=16", "model.dropout=0", "run.dir=" + run,
               std::string("model.fusion=") + fusion});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const CommandResult exported =
        command({"export", "--int8", run, "-o", small, "--smallest", "8"});
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_THAT(exported.out,
                HasSubstr("19 matrices in 8 bits"));  // 5, 2 and 2 of a layer; the head
    EXPECT_EQ(dtype_of(small, "layers.1.up.weight.int8"), DType::i8);
    EXPECT_EQ(dtype_of(small, "embed.weight.int8"), DType::i8);
    if (fusion == std::string("channel_gate")) {
      EXPECT_EQ(dtype_of(small, "layers.1.gate.weight"), DType::f32);
    }
    EXPECT_NEAR(loss(small), loss(run), 0.01);
  }
}

TEST_F(HybridExport, SizesThatNoMemoryHoldsAreRefusedAtOnce) {
  folder_.put("large.yaml", "model: {name: hybrid, width: 65536, layers: 1000, heads: 64}\n");
  const CommandResult refused = command({"train", "large.yaml", "data.path=text.txt"});
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
}

}  // namespace
}  // namespace fullbore

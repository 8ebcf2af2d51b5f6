#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct StoredBytes {
  std::string name;
  TensorType type;
  std::vector<char> bytes;
};
using Weights = std::vector<StoredBytes>;

StoredBytes& find(Weights& weights, const std::string& name) {
  const auto found = std::find_if(weights.begin(), weights.end(),
                                  [&](const StoredBytes& each) { return each.name == name; });
  EXPECT_NE(found, weights.end()) << name;
  return *found;
}

class Int8ExportTest : public JobTest {
 protected:
  /// The checkpoint `from` as `to`, whole and sound, with other weights.
  void rewrite(const std::string& from, const std::string& to,
               const std::function<void(Weights&)>& change) const {
    const CheckpointFolder folder =
        open_checkpoint_folder(folder_.path() + "/" + from).take_or_throw();
    CheckpointContents contents;
    for (const char* name : {"position.json", "config.json", "tokenizer.json", "metrics.json"})
      contents.texts[name] = folder.text(name).take_or_throw();
    const Checkpoint file = folder.group("weights").take_or_throw();
    Weights weights;
    for (const StoredTensor& tensor : file.tensors()) {
      weights.push_back({tensor.name, tensor.type, std::vector<char>(tensor.bytes())});
      ASSERT_TRUE(file.read(tensor, weights.back().bytes.data()).ok());
    }
    change(weights);
    TensorGroup group{"weights", {}, false};
    for (const StoredBytes& each : weights)
      group.tensors.push_back({each.name, each.type, each.bytes.data()});
    contents.groups = {group};
    fs::remove_all(folder_ / to);
    ASSERT_TRUE(write_checkpoint_folder(folder_ / to, contents).ok());
  }
  /// The tiny model is narrower than what is quantised by default.
  CommandResult export_int8(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"export", "--int8", "runs/tiny-1", "--smallest", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return command(arguments);
  }
  double loss(const std::string& model) const {
    const CommandResult result = command({"eval", model, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out)["loss"];
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
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

TEST_F(Int8ExportTest, EvalAndGenerateReadIt) {
  ASSERT_EQ(train({"optim.ema_decay=0.5", "train.evaluate=ema"}).exit_code, 0);
  const CommandResult exported = export_int8({"-o", "deep/small/"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("5 matrices in 8 bits"));
  const double before = loss("runs/tiny-1"), after = loss("deep/small");
  EXPECT_NE(after, before);
  EXPECT_NEAR(after, before, 0.01);
  EXPECT_THAT(exported.out, HasSubstr(fmt::format("loss {:.6f} in fp32, {:.6f} in int8: {:+.6f}",
                                                  before, after, after - before)));
  EXPECT_EQ(dtype_of("deep/small", "layers.0.mlp.up.weight.int8"), DType::i8);
  EXPECT_EQ(dtype_of("deep/small", "layers.0.mlp.up.weight.int8_scale"), DType::f32);
  EXPECT_EQ(dtype_of("deep/small", "token_embedding.weight"), DType::f32) << "for the lookup";
  EXPECT_EQ(dtype_of("deep/small", "token_embedding.weight.int8"), DType::i8) << "for the head";

  const CommandResult text =
      command({"generate", "deep/small", "--prompt", "the sea", "--tokens", "40"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.out.size(), std::string("the sea\n").size() + 40);
  EXPECT_EQ(command({"generate", "deep/small", "--samples", "3", "--tokens", "20"}).exit_code, 0);

  const CommandResult twice = command({"export", "--int8", "deep/small", "-o", "again"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("in 8 bits already"));
  const CommandResult foreign = command({"export", "deep/small", "-o", "again"});
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_THAT(foreign.err, HasSubstr("is in 8 bits, which the layout has no place for"));
}

// A neuron that is never active, with huge weights behind it, changes nothing in fp32; but beside them there is
// nothing left of the other weights in 8 bits.
TEST_F(Int8ExportTest, WhatCostsMoreThanTheGateIsNotWritten) {
  ASSERT_EQ(train({"train.steps=100"}).exit_code, 0);
  rewrite("runs/tiny-1/checkpoints/last", "outlier", [](Weights& weights) {
    StoredBytes& up = find(weights, "layers.0.mlp.up.weight");
    StoredBytes& down = find(weights, "layers.0.mlp.down.weight");
    auto* const in = reinterpret_cast<float*>(up.bytes.data());
    auto* const out = reinterpret_cast<float*>(down.bytes.data());
    std::fill(in, in + up.type.shape[1], 0.0F);
    for (int64_t row = 0; row < down.type.shape[0]; ++row) out[row * down.type.shape[1]] = 1000;
  });
  const std::vector<std::string> before = names();
  const auto gated = [&](const char* gate) {
    return command(
        {"export", "--int8", "outlier", "--smallest", "8", "-o", "small", "--gate", gate});
  };
  for (const char* gate : {"0.01", "0.05"}) {
    const CommandResult result = gated(gate);
    EXPECT_EQ(result.exit_code, 4) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(fmt::format("the gate is {}. Nothing was written.", gate)));
    EXPECT_EQ(names(), before);
  }
  EXPECT_EQ(gated("0.06").exit_code, 2) << "never more than 0.05";
  const CommandResult kept = command(
      {"export", "--int8", "outlier", "--smallest", "8", "-o", "small", "--keep", "*mlp.down*"});
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
}

TEST_F(Int8ExportTest, MatricesCanBeKept) {
  ASSERT_EQ(train().exit_code, 0);
  const CommandResult some = export_int8({"-o", "some", "--keep", "*mlp*", "--keep", "token*"});
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("2 matrices in 8 bits"));
  EXPECT_EQ(dtype_of("some", "layers.0.mlp.up.weight"), DType::f32);
  EXPECT_NEAR(loss("some"), loss("runs/tiny-1"), 0.01);
  const CommandResult slip = export_int8({"-o", "none", "--keep", "*mpl.up*"});
  EXPECT_EQ(slip.exit_code, 2);
  EXPECT_THAT(slip.err, HasSubstr("--keep: '*mpl.up*' matches no matrix. The nearest is '"));
  const CommandResult none = command({"export", "--int8", "runs/tiny-1", "-o", "none"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("reads a matrix of 32 by 32 or more"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(Int8ExportTest, WrongUsageIsExplained) {
  ASSERT_EQ(train({"train.steps=5"}).exit_code, 0);
  for (const char* option : {"--gate", "--batches", "--smallest"}) {
    const CommandResult idle = command({"export", "runs/tiny-1", "-o", "x", option, "0.02"});
    EXPECT_EQ(idle.exit_code, 2) << option;
  }
  EXPECT_THAT(command({"export", "runs/tiny-1", "-o", "x", "--keep", "*"}).err,
              HasSubstr("are of --int8"));
  EXPECT_EQ(export_int8({"-o", "x", "--format", "huggingface"}).exit_code, 2);
  EXPECT_EQ(export_int8({"-o", "runs"}).exit_code, 3) << "overwrites nothing";
  EXPECT_EQ(export_int8({"-o", "text.txt/x"}).exit_code, 3);
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(Int8ExportTest, DamageAndOtherModelsAreNamed) {
  ASSERT_EQ(train().exit_code, 0);
  ASSERT_EQ(export_int8({"-o", "small"}).exit_code, 0);
  const std::string path = folder_.path() + "/small/weights.safetensors";
  const std::string whole = read_file(path).take_or_throw();

  std::string bytes = whole;
  bytes[bytes.size() - 3] ^= 1;
  ASSERT_TRUE(write_file_atomically(path, bytes).ok());
  const CommandResult flipped = command({"generate", "small"});
  EXPECT_EQ(flipped.exit_code, 3);
  EXPECT_THAT(flipped.err, HasSubstr("weights.safetensors: its checksum is "));

  ASSERT_TRUE(write_file_atomically(path, whole.substr(0, whole.size() / 2)).ok());
  const CommandResult torn = command({"eval", "small"});
  EXPECT_EQ(torn.exit_code, 3);
  EXPECT_THAT(torn.err, HasSubstr("bytes long, "));

  // Whole, but not what the configuration describes.
  ASSERT_TRUE(write_file_atomically(path, whole).ok());
  const auto changed = [&](const std::function<void(StoredBytes&)>& change) {
    rewrite("small", "other",
            [&](Weights& weights) { change(find(weights, "layers.0.mlp.up.weight.int8")); });
    const CommandResult result = command({"generate", "other"});
    EXPECT_EQ(result.exit_code, 3);
    return result.err;
  };
  EXPECT_THAT(changed([](StoredBytes& up) { up.name = "layers.7.mlp.up.weight.int8"; }),
              HasSubstr("has 'layers.7.mlp.up.weight.int8', which no matmul"));
  EXPECT_THAT(changed([](StoredBytes& up) {
                up.type.shape = {16, 64};
              }),
              HasSubstr("'layers.0.mlp.up.weight.int8' is i8[16,64] in it, i8[64,16] here"));
  EXPECT_THAT(changed([](StoredBytes& up) { up.type.dtype = DType::u8; }),
              HasSubstr("'layers.0.mlp.up.weight.int8' is u8[64,16] in it, i8[64,16] here"));
  rewrite("small", "other", [](Weights& weights) {
    std::erase_if(weights, [](const StoredBytes& each) {
      return each.name == "layers.0.mlp.up.weight.int8_scale";
    });
  });
  const CommandResult lacking = command({"eval", "other"});
  EXPECT_EQ(lacking.exit_code, 3);
  EXPECT_THAT(lacking.err, HasSubstr("'layers.0.mlp.up.weight.int8_scale' f32[64] is not in it"));
}

}  // namespace
}  // namespace fullbore

// GGUF files: exported by the command, read as what was trained, gone on from. tools/interop gguf_models reads them with
// other programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/text/gguf_model.h"
#include "fullbore/text/gguf_tokenizer.h"
#include "fullbore/text/trained_text_model.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

const std::string kFamilies = testing::source_folder() + "/tests/data/golden/families/";

class GgufTest : public JobTest {
 protected:
  CommandResult train_one(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> settings = {"run.dir=" + name, "model.width=32", "train.steps=2"};
    settings.insert(settings.end(), more.begin(), more.end());
    return train(settings);
  }
  /// Every parameter of the run is in the file, within what its type rounds.
  void expect_same(const std::string& run, const std::string& file, double relative) const {
    const TrainedModel model = load_model(folder_ / run);
    const GgufModel read = GgufModel::open(folder_ / file);
    int64_t compared = 0;
    for (const GgufName& name : read.names(read.config().decoder)) {
      if (model.state.find(name.ours) < 0) continue;
      const std::vector<float> here = model.state.read<float>(name.ours);
      const std::vector<float> there = read.read(name);
      ASSERT_EQ(here.size(), there.size()) << name.ours;
      double most = 0;
      for (const float value : here) most = std::max(most, std::fabs(double{value}));
      const double bound = name.shape.rank() == 1 ? 0 : relative * most;
      for (size_t i = 0; i < here.size(); ++i)
        ASSERT_NEAR(here[i], there[i], bound) << name.ours << " " << i;
      ++compared;
    }
    EXPECT_GE(compared, 9);
  }
};

TEST_F(GgufTest, ALlamaComesBack) {
  const std::vector<std::string> settings = {"model.name=llama",
                                             "model.key_value_heads=1",
                                             "model.rotary_theta=100",
                                             "model.rotary_scaling=llama3",
                                             "model.rotary_factor=4",
                                             "model.rotary_original=16",
                                             "data.tokenizer=bpe:" + kFamilies + "llama3.json"};
  const CommandResult trained = train_one("runs/llama", settings);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CommandResult exported =
      command({"export", "runs/llama", "--format", "gguf", "-o", "a.gguf"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  ASSERT_EQ(command({"export", "runs/llama", "--format", "gguf-q8_0", "-o", "b.gguf"}).exit_code,
            0);
  expect_same("runs/llama", "a.gguf", 0x1p-11);
  expect_same("runs/llama", "b.gguf", 1 / 254.0 + 0x1p-11);
  EXPECT_THAT(command({"export", "runs/llama", "--format", "gguf", "-o", "a.gguf"}).err,
              HasSubstr("exists already"));

  const GgufFile file = GgufFile::open(folder_ / "a.gguf").take_or_throw();
  const auto tokenizer = gguf_tokenizer(file).take_or_throw();
  const auto original = load_tokenizer(kFamilies + "llama3.json").take_or_throw();
  EXPECT_EQ(tokenizer->beginning_of_text(), original->beginning_of_text());
  for (const char* text : {"It'S 12345 caf\u00e9\n\n x", "<|eot_id|><|begin_of_text|>a", "keeper"})
    EXPECT_EQ(tokenizer->encode(text).value(), original->encode(text).value());

  std::vector<std::string> from = settings;
  from.push_back("model.initialize_from=a.gguf");
  const CommandResult back = train_one("runs/back", from);
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("a.gguf (llama in GGUF): "));
  EXPECT_THAT(back.err, HasSubstr("blk.*.attn_q.weight -> layers.*.attention.query.weight"));
  from.push_back("model.rotary_theta=200");
  EXPECT_THAT(train_one("runs/other", from).err, HasSubstr("a.gguf has rope_theta 100"));
}

TEST_F(GgufTest, AQwen2HasItsRowsAsTheyAre) {
  ASSERT_EQ(train_one("runs/qwen", {"model.name=llama", "model.attention_bias=qkv"}).exit_code, 0);
  ASSERT_EQ(command({"export", "runs/qwen", "--format", "gguf", "-o", "q.gguf"}).exit_code, 0);
  expect_same("runs/qwen", "q.gguf", 0x1p-11);
  const GgufFile file = GgufFile::open(folder_ / "q.gguf").take_or_throw();
  EXPECT_EQ(file.text("general.architecture").value(), "qwen2");
  EXPECT_THAT(gguf_tokenizer(file).error(), HasSubstr("'tokenizer.ggml.model' is 'none'; gpt2"));
}

TEST_F(GgufTest, AGpt2ComesBack) {
  ASSERT_EQ(train_one("runs/gpt", {"model.activation=gelu_tanh"}).exit_code, 0);
  ASSERT_EQ(command({"export", "runs/gpt", "--format", "gguf-q8_0", "-o", "g.gguf"}).exit_code, 0);
  expect_same("runs/gpt", "g.gguf", 1 / 254.0 + 0x1p-11);
  const CommandResult back =
      train_one("runs/back", {"model.activation=gelu_tanh", "model.initialize_from=g.gguf"});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("g.gguf (gpt2 in GGUF): "));
  EXPECT_THAT(train_one("runs/b", {"model.activation=gelu", "model.initialize_from=g.gguf"}).err,
              HasSubstr("model.activation is gelu, "));
}

TEST(GgufNames, RowsOfALlamaAreInPairs) {
  // Two heads of four rows, of one column: channel i and its partner i + 2 are neighbours there.
  const std::vector<float> here = {0, 1, 2, 3, 10, 11, 12, 13};
  const std::vector<float> there = {0, 2, 1, 3, 10, 12, 11, 13};
  EXPECT_EQ(paired_rows(here, 8, 2), there);
  EXPECT_EQ(halved_rows(there, 8, 2), here);
  const std::vector<float> wide = {0, 1, 2, 3, 4,
                                   5, 6, 7};  // six-wide heads would not fit: one head, four rows
  EXPECT_EQ(paired_rows(wide, 4, 1), (std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7}));
}

/// A file of one Llama block with something changed, and what is said of it.
std::string refused(const std::function<void(GgufMetadata&, std::vector<GgufSource>&)>& change) {
  const testing::ScratchFolder folder;
  nn::DecoderConfig decoder;
  decoder.vocabulary = 8;
  decoder.layers = 1;
  decoder.width = 32;
  HuggingFaceConfig config{.family = "llama", .decoder = decoder, .end_tokens = {}};
  GgufMetadata metadata = gguf_metadata(config);
  std::vector<GgufSource> tensors;
  for (const GgufName& name : gguf_names(decoder, "llama"))
    tensors.push_back({name.theirs, name.shape, GgufType::f32, [shape = name.shape] {
                         return std::vector<float>(static_cast<size_t>(shape.elements()));
                       }});
  change(metadata, tensors);
  const std::string path = folder / "x.gguf";
  EXPECT_TRUE(write_gguf(path, metadata, tensors).ok());
  try {
    GgufModel::open(path);
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
  return "";
}

TEST(GgufModel, RefusesWhatItWouldNotObey) {
  const auto key = [](const char* name, GgufValue value) {
    return refused([&](GgufMetadata& metadata, auto&) { metadata[name] = value; });
  };
  EXPECT_EQ(refused([](auto&, auto&) {}), "");
  EXPECT_THAT(key("general.architecture", std::string("mamba")),
              HasSubstr("is 'mamba'; gpt2, llama"));
  EXPECT_THAT(key("llama.block_count", uint64_t{0}), HasSubstr("is 0; a whole number from 1"));
  EXPECT_THAT(key("llama.block_count", uint64_t{2}),
              HasSubstr("'blk.1.attn_norm.weight' is missing"));
  EXPECT_THAT(key("llama.block_count", std::string("2")),
              HasSubstr("another type; a whole number"));
  EXPECT_THAT(key("llama.attention.head_count_kv", uint64_t{3}),
              HasSubstr("does not divide 4 heads"));
  EXPECT_THAT(key("llama.rope.dimension_count", uint64_t{4}),
              HasSubstr("the width of a head, 8, was"));
  EXPECT_THAT(key("llama.rope.scaling.type", std::string("yarn")),
              HasSubstr("is 'yarn'; none or linear"));
  EXPECT_THAT(key("llama.expert_count", uint64_t{8}),
              HasSubstr("experts, which are not supported"));
  EXPECT_THAT(key("llama.attention.layer_norm_rms_epsilon", -1.0), HasSubstr("a number above 0"));
  EXPECT_THAT(refused([](auto&, auto& tensors) { tensors.back().name = "blk.0.ffn_gat.weight"; }),
              HasSubstr("is missing"));
  EXPECT_THAT(refused([](auto&, auto& tensors) {
                tensors.push_back({"blk.0.ffn_gat.weight", {32}, GgufType::f32, [] {
                                     return std::vector<float>(32);
                                   }});
              }),
              HasSubstr("'blk.0.ffn_gat.weight' is no tensor of a llama of these sizes. Did you"));
  EXPECT_THAT(refused([](auto&, auto& tensors) {
                tensors.push_back({kGgufFrequencies, {4}, GgufType::f32, [] {
                                     return std::vector<float>(4, 3.0F);
                                   }});
              }),
              HasSubstr("is not that of Llama 3.1 or 3.2"));
}

}  // namespace
}  // namespace fullbore

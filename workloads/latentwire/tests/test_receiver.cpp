#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/runtime/state.h"
#include "fullbore/text/gguf_model.h"
#include "fullbore/text/huggingface_model.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "tests/support/evaluate.h"
#include "tests/support/scratch_folder.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/published_shapes.h"
#include "workloads/latentwire/receiver_rows.h"
#include "workloads/latentwire/receiver_weights.h"

namespace fullbore::latentwire {
namespace {

using testing_support::cpu_device;

// Bytes in their order, and a token that ends a turn of ChatML.
std::shared_ptr<const Tokenizer> byte_tokens() {
  BpeVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* special : {"<|im_start|>", "<|im_end|>"}) {
    vocabulary.special_tokens.push_back({special, static_cast<int32_t>(vocabulary.tokens.size())});
    vocabulary.tokens.emplace_back(special);
  }
  return BpeTokenizer::create(std::move(vocabulary)).take_or_throw();
}

nn::DecoderConfig small_llama() {
  return {.vocabulary = 260,
          .layers = 1,
          .heads = 2,
          .width = 8,
          .hidden = 12,
          .context = 256,
          .tie_head = true,
          .groups = 1};
}

/// A folder as transformers would save it, with weights drawn from a seed.
class HuggingFaceReceiver : public ::testing::Test {
 protected:
  HuggingFaceReceiver() : path_(folder_ / "model") {
    const TracedStep step = trace_evaluation(
        [](Trace& trace, std::span<const Tensor> batch) {
          const Tensor x = decoder_embeddings(trace, batch[0], small_llama());
          const nn::DecoderStates states = decoder_states(trace, {.embeddings = x}, small_llama());
          return Loss(language_model_loss(trace, decoder_head(trace, states.last, small_llama()),
                                          batch[0], {})
                          .mean);
        },
        {{"tokens", {DType::i32, {1, 4}}}});
    weights_ = initial_state(step, 5, cpu_device(1));
    export_huggingface_model(path_, {"llama", small_llama(), {257}}, weights_);
    save_tokenizer(*byte_tokens(), path_ + "/tokenizer.json").take_or_throw();
  }
  Config config(const std::string& rest = "") const {
    return parse_config(
        "{model: {name: latentwire}, wire: {slots: 2, width: 8, layers: 1, heads: 2}, train: "
        "{batch_size: 2}, receivers: {folders: ['mine=" +
            path_ + "'] " + rest + "}}",
        "x");
  }

  testing::ScratchFolder folder_;
  std::string path_;
  State weights_;
};

TEST_F(HuggingFaceReceiver, IsReadAndEndsAnswersAsItsFamilyDoes) {
  const std::vector<Receiver> receivers = open_receivers(config());
  const Receiver& receiver = receivers.at(0);
  EXPECT_EQ(receiver.decoder.width, 8);
  EXPECT_EQ(receiver.terminator_id, 257);  // <|im_end|>
  EXPECT_EQ(receiver.begin, -1);
  EXPECT_EQ(receiver.answer_ids("42", "row"), (std::vector<int32_t>{' ', '4', '2', 257}));
  EXPECT_TRUE(receiver.ends(std::vector<int32_t>{' ', 257}));
  EXPECT_FALSE(receiver.ends(std::vector<int32_t>{' ', '\n'}));
  EXPECT_EQ(receiver.answer_text(std::vector<int32_t>{' ', '4', '2', 257, '9'}), "42");
  EXPECT_EQ(answer_length(receiver, receiver.answer_ids("42", "row")).first, 1);
  // A checkpoint knows them without their folders.
  const std::vector<Receiver> again = recorded_receivers(receivers_json(receivers), config());
  EXPECT_EQ(again.at(0).decoder, receiver.decoder);
  EXPECT_EQ(again[0].terminator_id, 257);
  EXPECT_EQ(again[0].anchor_ids, receiver.anchor_ids);
  EXPECT_NE(usage_error([&] {
              open_receivers(config(", begin: front"));
            }).find("no token that begins a text; set receivers.begin=none"),
            std::string::npos);
}

// In a conversation: the header of the reply stands before an answer once, in rows behind vectors and behind a text.
TEST_F(HuggingFaceReceiver, HasTheHeaderOfAReplyForAnAnchor) {
  const auto open = [&](const std::string& rest) {
    return open_receivers(config(", system: Be short." + rest)).at(0);
  };
  const auto text_of_ids = [](const Receiver& receiver, std::span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) receiver.tokenizer->append_bytes(id, text);
    return text;
  };
  const std::string source = "Context: <|im_end|> here.\nQuestion: Where?\n";
  const std::string turns = "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n" + source +
                            "<|im_end|>\n<|im_start|>assistant\n";
  const Receiver chat = open(", anchor_mode: chat");
  EXPECT_EQ(chat.anchor, "<|im_start|>assistant\n");
  EXPECT_EQ(chat.anchor_ids.front(), 256);
  EXPECT_EQ(chat.layout.anchor, chat.anchor_ids);
  EXPECT_EQ(chat.layout.begin, RowLayout::Begin::none);
  EXPECT_EQ(chat.answer_ids("42", "row"), (std::vector<int32_t>{'4', '2', 257}));
  const std::vector<int32_t> prompt = chat.prompt_ids(source);
  EXPECT_EQ(text_of_ids(chat, prompt), turns);
  EXPECT_EQ(std::ranges::count(prompt, 256), 3);  // what a text spells begins no turn,
  EXPECT_EQ(std::ranges::count(prompt, 257), 2);  // and ends none
  EXPECT_EQ(chat.prompt_of(chat.ids(source)), prompt);

  const Receiver both = open(", scaffold: chat");
  EXPECT_EQ(text_of_ids(both, both.prompt_ids(source)), turns + "Answer:");
  EXPECT_EQ(both.prompt_of(both.ids(source)), both.prompt_ids(source));
  EXPECT_EQ(both.answer_ids("42", "row"), (std::vector<int32_t>{' ', '4', '2', 257}));
  const Receiver plain = open("");
  EXPECT_EQ(text_of_ids(plain, plain.prompt_ids(source)), source + "Answer:");
  EXPECT_EQ(open(", anchor_mode: none, begin: none").anchor_ids, std::vector<int32_t>());

  // What a run was trained on is what it is measured on.
  const Config as_chat = config(", anchor_mode: chat"), as_text = config();
  const std::string recipe = row_recipe(as_chat, open_receivers(as_chat));
  check_rows(recipe, as_chat, open_receivers(as_chat), "run");
  try {
    check_rows(recipe, as_text, open_receivers(as_text), "run");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("run was trained on rows of the recipe \"anchor chat"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(HuggingFaceReceiver, FillsTheFrozenState) {
  const Config all = config();
  const auto receivers = std::make_shared<const std::vector<Receiver>>(open_receivers(all));
  const auto source = attribute_prompts(123, 0, 4);
  const PromptExtents extents = prompt_extents(*source, *receivers, 512, 12, false);
  const TracedStep step = trace_training_step(latent_loss(all, receivers),
                                              PromptBatches::fields_of(*receivers, 2, extents), {});
  State state = initial_state(step, 1, cpu_device(1));
  fill_receivers(*receivers, state);
  int filled = 0;
  for (const StateEntry& entry : weights_.entries()) {
    if (entry.role != Role::parameter) continue;
    ++filled;
    EXPECT_EQ(state.read<float>("receivers.mine." + entry.name), weights_.read<float>(entry.name))
        << entry.name;
  }
  EXPECT_GT(filled, 5);
  const std::vector<float> table = weights_.read<float>("token_embedding.weight");
  double square = 0;
  for (const float x : table)
    square += static_cast<double>(x) * x / static_cast<double>(table.size());
  EXPECT_NEAR(state.read<float>("receivers.mine.statistics.rms")[0], std::sqrt(square), 1e-6);
}

TEST_F(HuggingFaceReceiver, IsReadWhereItLies) {
  const Config all = config();
  const auto receivers = std::make_shared<const std::vector<Receiver>>(open_receivers(all));
  const auto source = attribute_prompts(123, 0, 4);
  const PromptExtents extents = prompt_extents(*source, *receivers, 512, 12, false);
  const TracedStep step = trace_training_step(latent_loss(all, receivers),
                                              PromptBatches::fields_of(*receivers, 2, extents), {});
  // Other safetensors beside the model's are nobody's business.
  std::filesystem::copy_file(path_ + "/model.safetensors", path_ + "/other.safetensors");
  const std::shared_ptr<const FrozenWeights> mapped = weights_in_place(*receivers);
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(mapped->path(), path_);
  State state = initial_state(step, 1, cpu_device(1), mapped->lend(state_entries(step.graph)));
  fill_receivers(*receivers, state);
  for (const StateEntry& entry : weights_.entries()) {
    if (entry.role != Role::parameter) continue;
    const std::string name = "receivers.mine." + entry.name;
    EXPECT_TRUE(state.is_lent(state.find(name))) << name;
    EXPECT_EQ(state.read<float>(name), weights_.read<float>(entry.name)) << name;
  }
  // Statistics are of the table, and the State's own.
  const int rms = state.find("receivers.mine.statistics.rms");
  EXPECT_FALSE(state.is_lent(rms));
  EXPECT_NE(state.read<float>("receivers.mine.statistics.rms")[0], 1);

  // A checkpoint's receivers have no folder until the user names it.
  std::vector<Receiver> recorded = recorded_receivers(receivers_json(*receivers), all);
  EXPECT_EQ(weights_in_place(recorded), nullptr);
  std::shared_ptr<const TextEncoder> none;
  name_folders(recorded, none, std::vector<std::string>{path_});
  EXPECT_NE(weights_in_place(recorded), nullptr);
  name_folders(recorded, none, std::vector<std::string>{"mine=" + path_});
  EXPECT_EQ(recorded[0].folder, path_);
  EXPECT_EQ(usage_error([&] { name_folders(recorded, none, std::vector<std::string>{"other=x"}); }),
            "--frozen-from other=x: NAME=FOLDER was expected, of mine");
}

// The same model in a GGUF file: rows of queries and keys lie otherwise there, and half precision rounds matrices.
TEST_F(HuggingFaceReceiver, ComesFromAGgufFileToo) {
  const Receiver folder = open_receivers(config()).at(0);
  const std::string folder_identity = weights_identity(folder, config());
  for (const GgufType type : {GgufType::f32, GgufType::f16}) {
    std::filesystem::remove_all(path_);
    path_ = folder_ / fmt::format("model{}.gguf", static_cast<uint32_t>(type));
    export_gguf_model(path_, {"llama", small_llama(), {257}}, *byte_tokens(), type, weights_);
    const std::vector<Receiver> receivers = open_receivers(config());
    EXPECT_EQ(receivers.at(0).terminator_id, 257);
    EXPECT_EQ(receivers[0].ids("a b"), folder.ids("a b"));
    EXPECT_EQ(receivers[0].decoder.width, 8);
    EXPECT_EQ(weights_in_place(receivers), nullptr);
    EXPECT_NE(weights_identity(receivers[0], config()), folder_identity);
    std::vector<StateEntry> entries;
    for (StateEntry entry : weights_.entries()) {
      if (entry.role != Role::parameter) continue;
      entry.name = "receivers.mine." + entry.name;
      entry.role = Role::frozen;
      entries.push_back(entry);
    }
    State state(entries, cpu_device(1));
    fill_receivers(receivers, state);
    for (const StateEntry& entry : entries) {
      const std::vector<float> here = state.read<float>(entry.name),
                               there = weights_.read<float>(entry.name.substr(15));
      for (size_t i = 0; i < here.size(); ++i)
        EXPECT_NEAR(here[i], there[i],
                    type == GgufType::f32 ? 0 : 0x1p-11 * std::abs(there[i]) + 0x1p-25)
            << entry.name;
    }
  }
  std::filesystem::resize_file(path_, 200);
  EXPECT_THROW(open_receivers(config()), DataError);
}

TEST_F(HuggingFaceReceiver, WithMoreTokensThanRowsIsRefused) {
  std::filesystem::remove_all(path_);
  nn::DecoderConfig narrow = small_llama();
  narrow.vocabulary = 250;
  std::vector<StateEntry> entries = weights_.entries();
  for (StateEntry& entry : entries)
    if (entry.name == "token_embedding.weight") entry.type.shape = {250, 8};
  const State few(entries, cpu_device(1));
  export_huggingface_model(path_, {"llama", narrow, {}}, few);
  save_tokenizer(*byte_tokens(), path_ + "/tokenizer.json").take_or_throw();
  try {
    open_receivers(config());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "receiver mine: the tokenizer has 258 tokens, the model's table 250 rows");
  }
}

TEST(Receivers, AreNamedWithARunThatIsThere) {
  const auto error = [](const std::string& folders) {
    return usage_error([&] {
      open_receivers(parse_config(
          "{model: {name: latentwire}, receivers: {folders: [" + folders + "]}}", "x"));
    });
  };
  EXPECT_EQ(
      error("'bpe'"),
      "receivers.folders: 'bpe' is no NAME=RUN with a name of letters a to z, digits, - and _");
  EXPECT_EQ(error("'a=random:bpe', 'a=random:bytes'"),
            "receivers.folders: two receivers are named a");
  EXPECT_EQ(error("'a=random:other'"),
            "receivers.folders: a=random:other: there is no such model; bpe, bytes, smollm2-135m, "
            "llama-3.1-8b, qwen2.5-7b are known");
  EXPECT_EQ(error(""), "receivers.folders: none is named");
}

TEST(Receivers, RefuseAnchorsThatTheyCannotHave) {
  const auto open = [](const std::string& keys) {
    return open_receivers(parse_config(
        "{model: {name: latentwire}, receivers: {folders: ['a=random:bpe']" + keys + "}}", "x"));
  };
  EXPECT_EQ(usage_error([&] { open(", anchor_mode: chat"); }),
            "receiver a: its tokenizer has no turns of a conversation (Llama 3, ChatML, Qwen2 and "
            "SmolLM2 have); set receivers.anchor_mode=text and receivers.scaffold=plain");
  Receiver merging = open("").at(0);
  merging.anchor_pieces = {{"The pri"}};
  merging.anchor_is_header = true;  // no space between
  try {
    merging.answer_ids("ce", "row 9");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("row 9: receiver a: the anchor 'The pri' merges with the answer 'ce"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace fullbore::latentwire

#include "fullbore/train/sequence_states.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/small_recurrent_model.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using ::testing::HasSubstr;

const std::string kModel = "small width=8";

/// A generator of `samples` texts with a State of its own.
class Texts {
 public:
  explicit Texts(int64_t samples, int64_t chunk = 4, DType precision = DType::f32)
      : Texts({.samples = samples, .context = 0, .chunk = chunk}, precision) {}

  Generator& operator*() { return generator_; }
  Generator* operator->() { return &generator_; }
  std::vector<float> logits(int64_t sample = 0) const {
    const std::span<const float> values = generator_.logits(sample);
    return {values.begin(), values.end()};
  }
  std::vector<int32_t> go_on(int64_t count, int64_t sample = 0) {
    std::vector<int32_t> made;
    generator_.go_on(count, {.repetition_penalty = 1.2}, [&](int64_t text, int32_t token) {
      if (text == sample) made.push_back(token);
      return true;
    });
    return made;
  }
  void zero(const std::string& name) {
    std::ranges::fill(Edited<float>(state_, "generated." + name), 0.0F);
  }

 private:
  Texts(const GeneratorSizes& sizes, DType precision)
      : state_(made_state(sizes)),
        generator_(decode(), sizes, state_, CompileOptions{.precision = precision}) {}

  static DecodeFunction decode() { return recurrent_decode(testing::SmallRecurrentModel::model()); }
  static State made_state(const GeneratorSizes& sizes) {
    Trace trace("t", false);
    const Tensor tokens = trace.batch("tokens", {DType::i32, {sizes.samples, 1}});
    const Tensor index = trace.batch("index", {DType::i64, {}});
    trace.result("logits", decode()(trace, tokens, index, index, 0));
    TracedStep step{Graph(), trace.initializers()};
    step.graph = trace.finish();
    return initial_state(step, 5, cpu_device(1));
  }

  State state_;
  Generator generator_;
};

const std::vector<int32_t> kTokens = {0, 6, 3, 2, 3, 6, 0};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return most / largest;
}

/// Logits behind four tokens and three more in segments of their own; what `forgotten` names is zero in between.
std::vector<float> four_and_three(DType precision, const std::string& forgotten = "") {
  Texts four(1, 4, precision);
  four->begin(std::span(kTokens).first(4));
  if (!forgotten.empty()) four.zero(forgotten);
  Texts three(1, 3, precision);
  three->resume(four->sequences());
  three->extend(std::span(kTokens).last(3));
  return three.logits();
}

TEST(SequenceStates, SevenTokensAreFourAndThreeAreSevenSingleOnes) {
  for (const auto& [precision, bound] : {std::pair(DType::f32, 1e-5), {DType::bf16, 3e-2}}) {
    Texts whole(1, 7, precision);
    whole->begin(kTokens);
    Texts single(1, 1, precision);
    single->begin(kTokens);
    EXPECT_LE(difference(single.logits(), whole.logits()), bound);
    EXPECT_LE(difference(four_and_three(precision), whole.logits()), bound);
    for (const char* forgotten : {"previous", "memory", "history", "state_space"})
      EXPECT_GT(difference(four_and_three(precision, forgotten), whole.logits()),
                precision == DType::f32 ? 10 * bound : 0)
          << forgotten;
    EXPECT_EQ(whole->sequences().text(0).tokens, 7);
  }
}

TEST(SequenceStates, PromptsOfEveryLengthLeaveWhatSingleTokensLeave) {
  Texts chunks(1, 256);  // then 32 and 1
  Texts single(1, 1);
  std::vector<int32_t> prompt;
  for (int32_t length = 1; length <= 330; ++length) {
    prompt.push_back(length * length * 7 % 11);
    if (length > 3 && length % 47 != 31 && length != 256) continue;
    chunks->begin(prompt);
    single->begin(prompt);
    EXPECT_LE(difference(chunks.logits(), single.logits()), 1e-5) << length;
  }
}

TEST(SequenceStates, ATextGoesOnInAnotherProcessToTheSameBits) {
  const testing::ScratchFolder folder;
  Texts one(2);
  one->set_seed(9);
  one->begin(kTokens);
  const std::vector<int32_t> whole = one.go_on(40, 1);
  Texts first(2);
  first->set_seed(9);
  first->begin(kTokens);
  std::vector<int32_t> parts = first.go_on(17, 1);
  const SequenceStates saved = first->sequences();
  ASSERT_TRUE(save_sequences(folder / "s", saved, kModel).ok());
  Texts second(2);
  const Result<SequenceStates> loaded = load_sequences(folder / "s", second->sequences(), kModel);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(loaded.value(), saved);
  EXPECT_EQ(loaded.value().text(1).tokens, 7 + 16) << "the last one is yet to be read";
  EXPECT_EQ(loaded.value().text(1).made, 17);
  second->resume(loaded.value());
  const std::vector<int32_t> rest = second.go_on(23, 1);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(one.logits(1), second.logits(1));
}

TEST(SequenceStates, AreOfConstantSize) {
  Texts texts(1);
  const int64_t floats = 8 + 2 * 4 * 4 + 3 * 24 + 2 * 4 * 8;
  EXPECT_EQ(texts->sequences().bytes_per_sequence(), 4 * floats);
  texts->begin(std::vector<int32_t>(1000, 3));
  EXPECT_EQ(texts->sequences().bytes_per_sequence(), 4 * floats);
  EXPECT_EQ(texts->sequences().text(0).tokens, 1000);
}

TEST(SequenceStates, AreGatheredScatteredAndReset) {
  Texts one(1);
  one->begin(std::vector<int32_t>{1, 2, 3});
  const SequenceStates a = one->sequences();
  const std::vector<float> logits_a = one.logits();
  one->begin(std::vector<int32_t>{4, 5});
  const SequenceStates b = one->sequences();
  EXPECT_NE(a, b);

  Texts three(3);
  SequenceStates all = three->sequences();
  a.scatter(std::vector<int64_t>{2}, all);
  b.scatter(std::vector<int64_t>{0}, all);
  EXPECT_EQ(all.gather(std::vector<int64_t>{2}), a);
  EXPECT_EQ(all.gather(std::vector<int64_t>{0}), b);
  const SequenceStates twice = all.gather(std::vector<int64_t>{2, 0, 2});
  EXPECT_EQ(twice.gather(std::vector<int64_t>{0}), twice.gather(std::vector<int64_t>{2}));
  // In the batch a sequence goes on as it would alone.
  three->resume(twice);
  three->append(std::vector<int32_t>{7, 7, 7});
  one->resume(a);
  one->append(std::vector<int32_t>{7});
  EXPECT_LE(difference(three.logits(2), one.logits()), 1e-6);
  EXPECT_NE(logits_a, one.logits());

  const SequenceStates clone = all;
  all.reset(2);
  EXPECT_EQ(clone.gather(std::vector<int64_t>{2}), a) << "a copy is its own";
  EXPECT_EQ(all.gather(std::vector<int64_t>{0}), b);
  EXPECT_EQ(all.text(2).tokens, 0);
  three->resume(all);
  three->append(std::vector<int32_t>{4, 4, 4});
  one->begin(std::vector<int32_t>{4});
  EXPECT_LE(difference(three.logits(2), one.logits()), 1e-6);
}

TEST(SequenceStates, BeginWithWhatWasLearned) {
  State state({{"generated.a", Role::recurrent, {DType::f32, {2, 3}}},
               {"generated.b", Role::recurrent, {DType::f32, {2, 2}}},
               {"initial.a", Role::parameter, {DType::f32, {3}}}},
              cpu_device(1));
  for (size_t i = 0; i < 3; ++i) Edited<float>(state, "initial.a")[i] = static_cast<float>(i + 1);
  std::ranges::fill(Edited<float>(state, "generated.b"), 5.0F);
  begin_sequences(state);
  EXPECT_THAT(state.read<float>("generated.a"), ::testing::ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(state.read<float>("generated.b"), ::testing::Each(0.0F));
}

TEST(SequenceStates, PromptsFollowWhatWasSaid) {
  Texts texts(1);
  texts->begin(kTokens);
  const std::vector<int32_t> made = texts.go_on(3);
  texts->extend(std::vector<int32_t>{5, 1});
  std::vector<int32_t> all = kTokens;
  all.insert(all.end(), made.begin(), made.end());
  all.insert(all.end(), {5, 1});
  Texts other(1, 1);
  other->begin(all);
  EXPECT_LE(difference(texts.logits(), other.logits()), 1e-5);
  EXPECT_EQ(texts->sequences().text(0).tokens, 12);
}

/// A file of two sequences, and ways to spoil it.
class SequenceFile : public ::testing::Test {
 protected:
  SequenceFile() : sequences_(entries(), 11) {
    sequences_.text(1).tokens = 5;
    sequences_.text(1).seen[4] = true;
    EXPECT_TRUE(save_sequences(path_, sequences_, kModel).ok());
  }
  static std::vector<StateEntry> entries() {
    return {{"generated.a", Role::recurrent, {DType::f32, {2, 3}}},
            {"weight", Role::parameter, {DType::f32, {4}}},
            {"generated.b", Role::recurrent, {DType::bf16, {2, 2, 2}}}};
  }
  std::string refused(const SequenceStates& like, const std::string& model = kModel) const {
    const Result<SequenceStates> loaded = load_sequences(path_, like, model);
    return loaded.ok() ? "it was loaded" : loaded.error();
  }
  void rewrite(const SequenceStates& sequences) {
    ASSERT_TRUE(save_sequences(path_, sequences, kModel).ok());
  }

  const testing::ScratchFolder folder_;
  const std::string path_ = folder_ / "streams";
  SequenceStates sequences_;
};

TEST_F(SequenceFile, IsRefusedWhenTornOrAltered) {
  const std::string bytes = read_file(path_).value();
  ASSERT_EQ(load_sequences(path_, sequences_, kModel).value(), sequences_);
  for (size_t size = 0; size < bytes.size(); size += size < 100 ? 1 : 13) {
    folder_.put("streams", bytes.substr(0, size));
    EXPECT_THAT(refused(sequences_), HasSubstr(path_)) << size;
  }
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 4);
    folder_.put("streams", altered);
    EXPECT_THAT(refused(sequences_), HasSubstr(path_)) << at;
  }
}

TEST_F(SequenceFile, IsRefusedByAnotherModel) {
  EXPECT_THAT(refused(sequences_, "small width=16"),
              HasSubstr("states of another model: small width=8; small width=16 was expected"));
  std::vector<StateEntry> wider = entries();
  wider[0].type.shape = {2, 4};
  EXPECT_THAT(refused(SequenceStates(wider, 11)),
              HasSubstr("'generated.a' is f32[2,3], f32[2,4] was expected"));
  wider[0].name = "generated.c";
  EXPECT_THAT(refused(SequenceStates(wider, 11)), HasSubstr("'generated.c' is missing"));
  EXPECT_THAT(refused(SequenceStates(entries(), 12)), HasSubstr("'text.seen' is u8[2,11]"));
  std::vector<StateEntry> one = entries();
  one.pop_back();
  EXPECT_THAT(refused(SequenceStates(one, 11)), HasSubstr("generated.b"));
}

TEST_F(SequenceFile, MayBeOfAnyNumberOfSequences) {
  std::vector<StateEntry> more = entries();
  more[0].type.shape = {5, 3};
  more[2].type.shape = {5, 2, 2};
  EXPECT_EQ(load_sequences(path_, SequenceStates(more, 11), kModel).take_or_throw(), sequences_);
}

TEST_F(SequenceFile, IsRefusedWhereItsTextsMakeNoSense) {
  SequenceStates wrong = sequences_;
  wrong.text(1).pending = 11;
  rewrite(wrong);
  EXPECT_THAT(refused(sequences_),
              HasSubstr("sequence 1: token 11 is outside the vocabulary [0, 11)"));
  wrong = sequences_;
  wrong.text(0).tokens = -1;
  rewrite(wrong);
  EXPECT_THAT(refused(sequences_), HasSubstr("sequence 0: -1 tokens read"));
  wrong = sequences_;
  wrong.text(0).made = -2;
  rewrite(wrong);
  EXPECT_THAT(refused(sequences_), HasSubstr("sequence 0: -2 tokens made"));
}

TEST_F(SequenceFile, IsRefusedWhenItIsOfSomethingElse) {
  const float value = 1;
  const NamedTensor tensor{"x", {DType::f32, {1}}, &value};
  ASSERT_TRUE(write_checkpoint(path_, std::span(&tensor, 1), {}).ok());
  EXPECT_THAT(refused(sequences_), HasSubstr("no states of sequences"));
  ASSERT_TRUE(write_checkpoint(path_, std::span(&tensor, 1), {{"fullbore.streams", "2"}}).ok());
  EXPECT_THAT(refused(sequences_), HasSubstr("of version 2; 1 is known"));
  ASSERT_TRUE(
      write_checkpoint(path_, std::span(&tensor, 1), {{"fullbore.streams", "1"}, {"model", kModel}})
          .ok());
  EXPECT_THAT(refused(sequences_), HasSubstr("does not tell of how many sequences it is"));
  EXPECT_FALSE(load_sequences(folder_ / "nothing", sequences_, kModel).ok());
}

}  // namespace
}  // namespace fullbore

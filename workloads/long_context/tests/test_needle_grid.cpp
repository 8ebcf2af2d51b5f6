#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/error.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/character_tokenizer.h"
#include "workloads/long_context/heat_map.h"
#include "workloads/long_context/needle_grid.h"
#include "workloads/long_context/recall_accuracy.h"
#include "workloads/long_context/reference_readers.h"

namespace fullbore::long_context {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CharacterTokenizer characters() {
  const std::string alphabet = shakespeare_alphabet();
  return CharacterTokenizer(std::vector<char32_t>(alphabet.begin(), alphabet.end()));
}

bool go_on(int64_t, int64_t) { return true; }

NeedleGridOptions grid_of(NeedleTask task) {
  NeedleGridOptions options;
  options.task = task;
  options.lengths = {256, 1024};
  options.depths = {0, 0.25, 0.5, 1};
  options.trials = 5;
  options.needles = task == NeedleTask::single ? 1 : 3;
  options.hops = 2;
  return options;
}

class EveryGrid : public ::testing::TestWithParam<NeedleTask> {};
INSTANTIATE_TEST_SUITE_P(Tasks, EveryGrid,
                         ::testing::Values(NeedleTask::single, NeedleTask::multi_needle,
                                           NeedleTask::multi_key, NeedleTask::multi_value,
                                           NeedleTask::multi_query, NeedleTask::variable_tracking));

TEST_P(EveryGrid, IsSolvedByReading) {
  const CharacterTokenizer tokenizer = characters();
  NeedleOracle oracle(tokenizer);
  const NeedleGrid grid = run_needle_grid(oracle, tokenizer, grid_of(GetParam()), go_on);
  for (const NeedleCell& cell : grid.cells) {
    EXPECT_GT(cell.asked, 0);
    EXPECT_EQ(cell.found, cell.asked) << cell.length << " " << cell.depth;
  }
  for (const LengthAccuracy& each : accuracy_by_length(grid)) EXPECT_EQ(each.accuracy, 1);
}

TEST_P(EveryGrid, IsNotSolvedWithoutTheNeedle) {
  const CharacterTokenizer tokenizer = characters();
  NeedleOracle oracle(tokenizer);
  NeedleGridOptions options = grid_of(GetParam());
  options.hide_answers = true;
  for (const NeedleCell& cell : run_needle_grid(oracle, tokenizer, options, go_on).cells)
    EXPECT_EQ(cell.found, 0);
}

TEST_P(EveryGrid, IsNotSolvedByGuessing) {
  const CharacterTokenizer tokenizer = characters();
  LetterGuesser guesser(tokenizer, 1);
  // At most some 500 guesses of 26^-4 each.
  for (const NeedleCell& cell :
       run_needle_grid(guesser, tokenizer, grid_of(GetParam()), go_on).cells)
    EXPECT_EQ(cell.found, 0);
}

TEST(NeedleGrid, CountsByLengthAndDepth) {
  const CharacterTokenizer tokenizer = characters();
  NeedleOracle oracle(tokenizer);
  const NeedleGrid single = run_needle_grid(oracle, tokenizer, grid_of(NeedleTask::single), go_on);
  ASSERT_EQ(single.cells.size(), 8U);
  EXPECT_EQ(single.cells[1].length, 256);
  EXPECT_EQ(single.cells[1].depth, 0.25);
  EXPECT_EQ(single.cells[1].asked, 5);
  EXPECT_EQ(single.tokens, 5 * 4 * (256 + 1024));
  const NeedleGrid many =
      run_needle_grid(oracle, tokenizer, grid_of(NeedleTask::multi_needle), go_on);
  ASSERT_EQ(many.cells.size(), 6U) << "three needles at two lengths";
  EXPECT_NEAR(many.cells[0].depth, 1.0 / 6, 1e-12);
  EXPECT_EQ(many.cells[0].asked, 5);
}

/// A model that sees the last tokens only.
class Shortsighted : public NeedleOracle {
 public:
  Shortsighted(const Tokenizer& tokenizer, int64_t context)
      : NeedleOracle(tokenizer), context_(context) {}
  int64_t context() const override { return context_; }
  void begin(int64_t room) override {
    room_ = room;
    first_ = true;
    NeedleOracle::begin(room);
  }
  void read(std::span<const int32_t> tokens) override {
    if (first_)
      tokens = tokens.last(std::min(tokens.size(), static_cast<size_t>(context_ - room_)));
    first_ = false;
    NeedleOracle::read(tokens);
  }

 private:
  int64_t context_;
  int64_t room_ = 0;
  bool first_ = true;
};

TEST(NeedleGrid, ShowsHowFarAModelSees) {
  const CharacterTokenizer tokenizer = characters();
  Shortsighted model(tokenizer, 512);
  const NeedleGrid grid = run_needle_grid(model, tokenizer, grid_of(NeedleTask::single), go_on);
  for (const NeedleCell& cell : grid.cells)
    EXPECT_EQ(cell.accuracy(), cell.length == 256 || cell.depth == 1 ? 1 : 0)
        << cell.length << " " << cell.depth;
  const std::vector<LengthAccuracy> lengths = accuracy_by_length(grid);
  ASSERT_EQ(lengths.size(), 2U);
  EXPECT_EQ(lengths[1].accuracy, 0.25);
}

/// Notes how much is read behind the first logits, and how much room there was to be.
class Measured : public NeedleOracle {
 public:
  Measured(const Tokenizer& tokenizer, bool takes_all)
      : NeedleOracle(tokenizer), takes_all_(takes_all) {}
  void begin(int64_t room) override {
    check();
    room_ = room;
    behind_ = -1;
    NeedleOracle::begin(room);
  }
  void read(std::span<const int32_t> tokens) override {
    if (behind_ >= 0) behind_ += static_cast<int64_t>(tokens.size());
    NeedleOracle::read(tokens);
  }
  std::span<const float> logits() override {
    behind_ = std::max<int64_t>(behind_, 0);
    return NeedleOracle::logits();
  }
  void check() const {
    if (behind_ < 0) return;
    EXPECT_LE(behind_, room_);
    if (takes_all_) {
      EXPECT_EQ(behind_, room_);
    }
  }

 private:
  bool takes_all_;
  int64_t room_ = 0;
  int64_t behind_ = -1;
};

// Else a model whose context an example fills would lose its first tokens.
TEST_P(EveryGrid, TakesNoMoreRoomThanItSays) {
  const CharacterTokenizer tokenizer = characters();
  Measured reader(tokenizer, true);
  run_needle_grid(reader, tokenizer, grid_of(GetParam()), go_on);
  reader.check();
}

TEST(MeasureRecall, TakesNoMoreRoomThanItSays) {
  const CharacterTokenizer tokenizer = characters();
  Measured reader(tokenizer, false);  // of filler behind the last question nothing is read
  const RecallSizes sizes{.vocabulary = 64, .length = 32, .pairs = 4};
  const RecallAccuracy result = measure_recall(reader, sizes, 5, 1, [](int64_t) { return true; });
  EXPECT_EQ(result.asked, 20);
  EXPECT_EQ(result.tokens, 160);
  EXPECT_NE(recall_key(1, sizes, 0), recall_key(1, sizes, 1));
}

/// Who knows every example by heart that it is asked for, of one size.
class KnowsByHeart : public ContextReader {
 public:
  KnowsByHeart(const RecallSizes& sizes, uint64_t seed) : sizes_(sizes), seed_(seed) {}
  int64_t context() const override { return sizes_.length; }
  void begin(int64_t) override {
    example_ = make_recall_example(recall_key(seed_, sizes_, next_++), sizes_);
    read_ = 0;
  }
  void read(std::span<const int32_t> tokens) override { read_ += tokens.size(); }
  std::span<const float> logits() override {
    logits_.assign(static_cast<size_t>(sizes_.vocabulary), 0);
    logits_[static_cast<size_t>(example_.targets[read_ - 1])] = 1;
    return logits_;
  }

 private:
  RecallSizes sizes_;
  uint64_t seed_;
  int64_t next_ = 0;
  RecallExample example_;
  size_t read_ = 0;
  std::vector<float> logits_;
};

TEST(MeasureRecall, AsksAtEveryPlaceThatHasAKeyAgain) {
  const RecallSizes sizes{.vocabulary = 64, .length = 64, .pairs = 8};
  KnowsByHeart reader(sizes, 3);
  const RecallAccuracy result = measure_recall(reader, sizes, 10, 3, [](int64_t) { return true; });
  EXPECT_EQ(result.asked, 80);
  EXPECT_EQ(result.right, 80);
}

TEST(NeedleGrid, HasTheSameExamplesInEveryGrid) {
  EXPECT_EQ(needle_key(1, 256, 0.5, 3), needle_key(1, 256, 0.5, 3));
  EXPECT_NE(needle_key(1, 256, 0.5, 3), needle_key(1, 256, 0.5, 4));
  EXPECT_NE(needle_key(1, 256, 0.5, 3), needle_key(1, 257, 0.5, 3));
  EXPECT_NE(needle_key(1, 256, 0.5, 3), needle_key(2, 256, 0.5, 3));
}

TEST(NeedleGrid, StopsWhenItIsTold) {
  const CharacterTokenizer tokenizer = characters();
  NeedleOracle oracle(tokenizer);
  const NeedleGrid grid = run_needle_grid(oracle, tokenizer, grid_of(NeedleTask::single),
                                          [](int64_t done, int64_t) { return done < 512; });
  ASSERT_EQ(grid.cells.size(), 1U);
  EXPECT_EQ(grid.cells[0].asked, 2);
}

TEST(NeedleGrid, SaysWhatAModelCannotSpell) {
  const CharacterTokenizer tokenizer({U'a', U'b'});
  LetterGuesser guesser(ByteTokenizer{}, 1);
  try {
    run_needle_grid(guesser, tokenizer, grid_of(NeedleTask::single), go_on);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the model cannot spell the text: "));
  }
}

TEST(ContextReaders, TakeTheMiddleOutAndLeaveOutWhatIsUnknown) {
  std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7};
  cut_middle(tokens, 0);
  EXPECT_EQ(tokens.size(), 7U);
  cut_middle(tokens, 5);
  EXPECT_THAT(tokens, ElementsAre(1, 2, 3, 6, 7));
  const EncodedText text = encode_known(CharacterTokenizer({U'a', U'b'}), "aéb\nb");
  EXPECT_THAT(text.tokens, ElementsAre(0, 1, 1));
  EXPECT_EQ(text.unknown_characters, 2);
}

TEST(HeatMaps, AreTextAndSvg) {
  const HeatMap map{
      "A <model>", "", {"1K", "2K"}, {"0 %", "50 %"}, {{1, "a"}, {0.5, "b"}, {0, ""}, {}}};
  const std::string plain = heat_map_text(map, {});
  EXPECT_THAT(plain, HasSubstr("0 %  100    50\n"));
  EXPECT_THAT(plain, HasSubstr("50 %   0     -\n"));
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(heat_map_text(map, {.colour = true, .unicode = true}),
              HasSubstr("\x1b[48;2;69;117;180m"));
  const std::string svg = heat_map_svg(map);
  EXPECT_THAT(svg, HasSubstr("A &lt;model&gt;"));
  EXPECT_THAT(svg, HasSubstr("fill=\"#4575b4\""));
  EXPECT_THAT(svg, HasSubstr("<title>b</title>"));
  // As wide as a bold title of 17 pixels, which takes up to 12 a letter.
  HeatMap long_title = map;
  long_title.title = std::string(100, 'm');
  EXPECT_THAT(heat_map_svg(long_title), HasSubstr("width=\"1232\" height="));
}

}  // namespace
}  // namespace fullbore::long_context

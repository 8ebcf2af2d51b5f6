#include "workloads/chess/record_batches.h"

#include <gtest/gtest.h>

#include <set>

#include "fullbore/data/byte_tokenizer.h"
#include "workloads/chess/record_recipes.h"

namespace fullbore::chess {
namespace {

constexpr int32_t kEnd = 256;

ChessRecord record(std::string prompt, std::string completion) {
  ChessRecord made;
  made.prompt = std::move(prompt);
  made.completion = std::move(completion);
  made.fen = made.prompt;
  return made;
}

std::shared_ptr<const ChessData> data_of(const std::vector<ChessRecord>& records) {
  auto data = std::make_shared<ChessData>(
      ChessData{ChessTokens(std::make_shared<ByteTokenizer>()), {}, {}, ""});
  for (const ChessRecord& each : records) {
    data->training.records.push_back(each);
    data->training.tokens.push_back(data->tokens.tokens(each).take_or_throw());
  }
  return data;
}

struct Filled {
  std::vector<int32_t> inputs, targets;
};

Filled fill(const RecordBatches& batches, uint64_t position) {
  const int64_t elements =
      batches.shapes()[batches.shape_at(position)].front().type.shape.elements();
  Filled filled;
  filled.inputs.resize(static_cast<size_t>(elements));
  filled.targets.resize(static_cast<size_t>(elements));
  void* const buffers[] = {filled.inputs.data(), filled.targets.data()};
  batches.fill(position, buffers);
  return filled;
}

TEST(ChessTokens, OfBytesEndBehindTheVocabulary) {
  const ChessTokens tokens(std::make_shared<ByteTokenizer>());
  EXPECT_EQ(tokens.end(), kEnd);
  EXPECT_EQ(tokens.vocabulary(), 257);
  const RecordTokens made = tokens.tokens(record("P: x M:", " e2e4")).take_or_throw();
  EXPECT_EQ(made.prompt.size(), 7U);
  EXPECT_EQ(made.completion, (std::vector<int32_t>{' ', 'e', '2', 'e', '4', kEnd}));
  const std::vector<int32_t> drawn = {'e', '2', kEnd, 'x'};
  EXPECT_EQ(tokens.text(drawn), "e2") << "what follows the end is nothing";
}

TEST(RecordBatches, AskForTheCompletionAlone) {
  const auto data = data_of({record("ab", "cd")});
  const RecordBatches batches(data, data->training, {.rows = 1, .lengths = {4, 8}});
  EXPECT_EQ(batches.shape_at(0), 0U) << "the end is a target alone: four tokens do";
  const Filled filled = fill(batches, 0);
  EXPECT_EQ(filled.inputs, (std::vector<int32_t>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(filled.targets, (std::vector<int32_t>{-1, 'c', 'd', kEnd}));
  const RecordBatches all(data, data->training,
                          {.rows = 1, .lengths = {4, 8}, .prompt_loss = true});
  EXPECT_EQ(fill(all, 0).targets, (std::vector<int32_t>{'b', 'c', 'd', kEnd}));
}

TEST(RecordBatches, HoldEachRecordOnceAnEpochInBatchesOfLikeLength) {
  std::vector<ChessRecord> records;
  for (int i = 0; i < 40; ++i)
    records.push_back(record(std::string(1, static_cast<char>('A' + i)),
                             std::string(static_cast<size_t>(1 + (i * 7) % 30), 'x')));
  const auto data = data_of(records);
  const RecordBatches batches(data, data->training, {.rows = 8, .lengths = {8, 16, 32}, .seed = 3});
  ASSERT_EQ(batches.batches(), 5U);
  std::multiset<int32_t> first, second;
  std::set<size_t> shapes;
  std::vector<int32_t> order[2];
  for (uint64_t position = 0; position < 10; ++position) {
    const Filled filled = fill(batches, position);
    shapes.insert(batches.shape_at(position));
    const size_t width = filled.inputs.size() / 8;
    for (size_t row = 0; row < 8; ++row) {
      (position < 5 ? first : second).insert(filled.inputs[row * width]);
      order[position / 5].push_back(filled.inputs[row * width]);
    }
  }
  EXPECT_EQ(std::set<int32_t>(first.begin(), first.end()).size(), 40U);
  EXPECT_EQ(first, second);
  EXPECT_NE(order[0], order[1]);
  EXPECT_EQ(shapes.size(), 3U) << "short records go in short batches";
  EXPECT_EQ(fill(batches, 7).inputs, fill(batches, 7).inputs);
}

// What is held out is read in its order, and rows beyond it ask for nothing.
TEST(RecordBatches, EndWithRowsThatAskForNothing) {
  const auto data = data_of({record("a", "b"), record("c", "d"), record("e", "f")});
  const RecordBatches batches(data, data->training, {.rows = 2, .lengths = {2}, .shuffled = false});
  EXPECT_EQ(batches.batches(), 2U);
  EXPECT_EQ(fill(batches, 0).targets, (std::vector<int32_t>{'b', kEnd, 'd', kEnd}));
  EXPECT_EQ(fill(batches, 1).targets, (std::vector<int32_t>{'f', kEnd, -1, -1}));
}

}  // namespace
}  // namespace fullbore::chess

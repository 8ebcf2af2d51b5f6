#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>

#include "workloads/chess/answer_measures.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/record_file.h"
#include "workloads/chess/record_recipes.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

struct Made {
  std::vector<ChessRecord> records;
  RecipeCounts counts;
};

Made made(RecipeOptions options, MoveRanker& ranker) {
  Made all;
  all.counts = make_records(options, ranker, [&](ChessRecord&& record) -> Status {
                 all.records.push_back(std::move(record));
                 return success();
               }).take_or_throw();
  return all;
}
Made made(RecordRecipe recipe, int64_t records, int threads = 2) {
  const auto ranker = search_ranker({.depth = 1}, threads);
  return made({.recipe = recipe, .records = records}, *ranker);
}

// Section 9 of the specification.
TEST(RecordRecipe, EndgamesHaveThreeToFivePieces) {
  std::array<int, 6> sizes{};
  std::set<std::string> fens;
  int black = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const std::string fen = endgame_fen(3, i);
    Position position;
    ASSERT_EQ(parse_fen(fen, position), FenError::kNone) << fen;
    EXPECT_EQ(position.castling, 0);
    EXPECT_TRUE(position.half_moves == 0 && position.full_moves >= 40 && position.full_moves <= 80);
    ++sizes[static_cast<size_t>(std::popcount(position.occupied()))];
    black += position.to_move == Side::kBlack;
    fens.insert(fen);
  }
  EXPECT_EQ(sizes[3] + sizes[4] + sizes[5], 1000);
  EXPECT_NEAR(sizes[3], 340, 80);  // fewer than 400: many are drawn
  EXPECT_NEAR(sizes[5], 220, 60);
  EXPECT_NEAR(black, 500, 60);
  EXPECT_EQ(fens.size(), 1000U);
  EXPECT_EQ(endgame_fen(3, 7), endgame_fen(3, 7));
  EXPECT_NE(endgame_fen(3, 7), endgame_fen(4, 7));
}

TEST(RecordRecipe, RecordsDependOnTheOptionsAlone) {
  for (const RecordRecipe recipe : {RecordRecipe::endgames, RecordRecipe::games}) {
    const std::vector<ChessRecord> some = made(recipe, 50, 1).records;
    const std::vector<ChessRecord> more = made(recipe, 1200, 3).records;
    ASSERT_EQ(some.size(), 50U);
    ASSERT_EQ(more.size(), 1200U);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), more.begin()));
    std::set<std::string> prompts;
    for (const ChessRecord& record : more) {
      prompts.insert(record.prompt);
      EXPECT_EQ(parse_record_line(record_line(record)).take_or_throw(), record);
      EXPECT_EQ(RecordTruth::create(record).take_or_throw().score(record.completion).format_valid(),
                true);
    }
    EXPECT_EQ(prompts.size(), more.size());
  }
}

TEST(RecordRecipe, EndgamesAreExpandedAndShuffled) {
  const Made all = made(RecordRecipe::endgames, 400);
  EXPECT_EQ(all.counts.policy, 400);
  EXPECT_EQ(all.counts.arbiter, 0);
  int first_is_best = 0;
  for (const ChessRecord& record : all.records) {
    EXPECT_EQ(record.prompt.find(' ', 3), 74U) << record.prompt;
    EXPECT_TRUE(record.prompt.ends_with(" M:"));
    EXPECT_LE(record.completion.size(), 80U);
    EXPECT_TRUE(record.completion.ends_with("B: " + record.top[0].move));
    first_is_best += record.completion.substr(1, record.top[0].move.size()) == record.top[0].move;
  }
  EXPECT_LT(first_is_best, 160);
  // A right answer earns all but what one decimal takes of the evaluations.
  const RecordScore score =
      RecordTruth::create(all.records[0]).take_or_throw().score(all.records[0].completion);
  EXPECT_GT(score.reward(), 0.9);
  EXPECT_TRUE(score.policy.best_is_first);
}

TEST(RecordRecipe, GamesHaveBothTasks) {
  const Made all = made(RecordRecipe::games, 900);
  EXPECT_NEAR(static_cast<double>(all.counts.arbiter), 300, 60);
  EXPECT_EQ(all.counts.policy + all.counts.arbiter, 900);
  bool has_history = false;
  for (const ChessRecord& record : all.records) {
    if (record.task != ChessTask::arbiter) continue;
    EXPECT_EQ(RecordTruth::create(record).take_or_throw().score(record.completion).reward(), 1);
    EXPECT_LE(record.completion.size(), 150U);
    has_history |= record.prompt.find(' ', record.prompt.find('+')) != std::string::npos;
  }
  EXPECT_TRUE(has_history);
}

/// Knows every other position.
class Forgetful : public MoveRanker {
 public:
  explicit Forgetful(bool always) : always_(always) {}
  std::vector<EngineAnalysis> rank(std::span<const std::string> fens) override {
    std::vector<EngineAnalysis> all = search_->rank(fens);
    for (size_t i = 0; i < all.size(); i += always_ ? 1 : 2) all[i] = Failure{"forgotten"};
    return all;
  }
  std::string name() const override { return "forgetful"; }

 private:
  bool always_;
  std::unique_ptr<MoveRanker> search_ = search_ranker({.depth = 1}, 1);
};

TEST(RecordRecipe, PositionsThatNobodyRanksAreCounted) {
  Forgetful half(false), all(true);
  const Made some = made({.records = 700}, half);
  EXPECT_EQ(some.records.size(), 700U);
  EXPECT_NEAR(static_cast<double>(some.counts.unanalysed), 700, 2);
  EXPECT_EQ(some.counts.first_problem, "forgotten");
  EXPECT_EQ(make_records({}, all, [](ChessRecord&&) { return success(); }).error(), "forgotten");
  EXPECT_EQ(make_records({}, half, [](ChessRecord&&) -> Status { return Failure{"full"}; }).error(),
            "full");
}

TEST(RecordRecipe, HeldOutPositionsAreThoseOfTheirHash) {
  int held_out = 0;
  for (uint64_t i = 0; i < 1000; ++i) held_out += is_held_out(endgame_fen(1, i), 0.1);
  EXPECT_NEAR(held_out, 100, 30);
  for (uint64_t i = 0; i < 20; ++i) {
    const std::string fen = endgame_fen(1, i);
    EXPECT_EQ(is_held_out(fen, 0.5), is_held_out(fen.substr(0, fen.size() - 4) + "9 99", 0.5));
    EXPECT_FALSE(is_held_out(fen, 0));
    EXPECT_TRUE(is_held_out(fen, 1));
  }
}

TEST(MoveRanker, IsNamedWithItsDepth) {
  EXPECT_EQ(open_ranker("search", {}, 1)->name(), "search to depth 3");
  EXPECT_EQ(open_ranker("search:2", {}, 1)->name(), "search to depth 2");
  for (const char* wrong : {"search:0", "search:7", "search:", "search:2x", "magic", ""})
    EXPECT_THROW(open_ranker(wrong, {}, 1), UsageError) << wrong;
  EngineOptions missing;
  missing.path = "/nowhere/stockfish";
  EXPECT_THROW(open_ranker("stockfish:2", missing, 1), DataError);
}

ScoredAnswer answered(const ChessRecord& record, const std::string& completion) {
  return {RecordTruth::create(record).take_or_throw().score(completion), completion};
}

TEST(AnswerMeasures, CountRightAnswers) {
  const std::string start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
  const std::vector<RankedMove> top = {{"e2e4", .3}, {"d2d4", .2}};
  const std::vector<size_t> order = {0, 1};
  const ChessRecord p = policy_record(start, top, order, short_format());
  const ChessRecord a = arbiter_record(
      start, "e2e4", {}, arbiter_truth(start, "e2e4").take_or_throw(), short_format());
  const std::vector<ScoredAnswer> answers = {answered(p, p.completion),
                                             answered(p, " e2e4 E: 0.8 B: d2d4"),
                                             answered(a, a.completion),
                                             answered(p, " a2a3 a2a5 E: 0.0 0.0 B: a2a3"),
                                             answered(p, "nothing"),
                                             answered(a, start + "+0.001+0+0"),
                                             answered(a, a.completion.substr(0, 9))};
  const PolicyMeasures policy = measure_policy(answers);
  EXPECT_EQ(policy.answers, 4);
  EXPECT_EQ(policy.format, 0.75);
  EXPECT_EQ(policy.legal_best, 0.75);
  EXPECT_EQ(policy.legal_moves, (1 + 1 + 0.5) / 4);
  EXPECT_EQ(policy.best_move, 0.25);
  EXPECT_EQ(policy.top_moves, 0.5);
  EXPECT_NEAR(policy.eval_error, 0.5 / 3, 1e-12);
  EXPECT_EQ(policy.eval_errors, 3);
  EXPECT_EQ(policy.distinct_best, 1);
  EXPECT_EQ(policy.unique_completions, 1);
  const ArbiterMeasures arbiter = measure_arbiter(answers);
  EXPECT_EQ(arbiter.answers, 3);
  EXPECT_NEAR(arbiter.exact, 1.0 / 3, 1e-12);
  EXPECT_NEAR(arbiter.core, 1.0 / 3, 1e-12);
  EXPECT_NEAR(arbiter.flags, 2.0 / 3, 1e-12);
  EXPECT_NEAR(arbiter.reward, (1 + 0.906469 - 0.3) / 3, 1e-6);
  EXPECT_EQ(measure_policy({}).format, 0);

  const std::vector<ChessRecord> records = {p, a};
  EXPECT_NEAR(copy_baseline(records).reward, 0.906469, 1e-6);
  EXPECT_EQ(copy_baseline(records).exact, 0);
  EXPECT_EQ(policy_baselines(records).positions, 1);
}

TEST(AnswerMeasures, DifferentBestMovesAreCountedOfTwoHundredAtATime) {
  const std::string start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
  const std::vector<RankedMove> top = {{"e2e4", .3}, {"d2d4", .2}};
  const std::vector<size_t> order = {0, 1};
  const ChessRecord record = policy_record(start, top, order, short_format());
  const ScoredAnswer first = answered(record, " e2e4 E: 0.3 B: e2e4");
  const ScoredAnswer second = answered(record, " d2d4 E: 0.2 B: d2d4");
  const ScoredAnswer third = answered(record, " a2a3 E: 0.0 B: a2a3");
  std::vector<ScoredAnswer> answers(199, first);
  answers.push_back(answered(record, "nothing"));
  EXPECT_DOUBLE_EQ(measure_policy(answers).distinct_best, 1.0 / 199);
  answers.push_back(first);
  EXPECT_DOUBLE_EQ(measure_policy(answers).distinct_best, 1.0 / 200);
  for (int i = 0; i < 100; ++i) answers.insert(answers.end(), {first, second});
  EXPECT_DOUBLE_EQ(measure_policy(answers).distinct_best, (1.0 / 200 + 2.0 / 200) / 2);
  answers.insert(answers.end(), 150, third);
  EXPECT_DOUBLE_EQ(measure_policy(answers).distinct_best, (1.0 / 200 + 2.0 / 200) / 2);
}

TEST(AnswerMeasures, BaselinesAreOfOneMove) {
  const Made all = made(RecordRecipe::endgames, 1000);
  const PolicyBaselines baselines = policy_baselines(all.records);
  EXPECT_EQ(baselines.positions, 1000);
  // The specification has 2.7 % and 6 % of its own positions.
  EXPECT_LT(baselines.always.legal, 0.15);
  EXPECT_GT(baselines.always.legal, 0.01);
  EXPECT_GE(baselines.by_colour, baselines.always.legal);
  EXPECT_LT(baselines.always.reward, 0.2);
  int64_t legal = 0;
  for (const ChessRecord& record : all.records)
    legal += policy_truth(record.fen, {})
                 .take_or_throw()
                 .is_legal(*parse_uci_move(baselines.always.move));
  EXPECT_EQ(baselines.always.legal, static_cast<double>(legal) / 1000);
}

}  // namespace
}  // namespace fullbore::chess

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/philox.h"
#include "workloads/chess/arbiter_reward.h"
#include "workloads/chess/policy_reward.h"

namespace fullbore::chess {
namespace {

constexpr double kTolerance = 1e-6;
const std::string kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
const std::string kAfterE4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
const std::vector<RankedMove> kTop = {
    {"e2e4", .35}, {"d2d4", .30}, {"g1f3", .28}, {"c2c4", .20}, {"e2e3", .15}};

PolicyTruth start_truth(const std::vector<RankedMove>& top = kTop) {
  return policy_truth(kStart, top).take_or_throw();
}
RewardOptions scheme(RewardScheme which) {
  RewardOptions options;
  options.scheme = which;
  return options;
}
double reward_of(std::string_view text, RewardScheme which = RewardScheme::weighted) {
  return score_policy("P: " + kStart, text, start_truth(), scheme(which)).reward;
}

// Section 11 of the specification, P scores.
TEST(PolicyReward, IsThatOfTheSpecification) {
  struct Case {
    const char* text;
    double weighted, graduated;
  };
  const Case cases[] = {
      {"M: e2e4 d2d4 g1f3 c2c4 e2e3 E: 0.35 0.30 0.28 0.20 0.15 B: e2e4", 1, 1},
      {"  M: e2e3 e2e4  c2c4 d2d4 g1f3\n E: .15 B: e2e4", -0.3, -0.3},
      {"   M: e2e3 e2e4  c2c4 d2d4 g1f3\n E: 0.15 0.35 0.2 0.3 0.28   B: e2e4  ", 1, 1},
      {"M: e2e4 d2d4 g1f3 c2c4 e2e3 E: 0.35 0.30 0.28 0.20 0.15 B: d2d4", 0.816471, 0.8},
      {"M: e2e4 d2d4 g1f3 b1c3 a2a3 E: 0.40 0.20 0.28 0.10 0.00 B: c2c4", 0.537691, 0.6},
      {"M: a2a3 b2b3 h2h3 g2g3 f2f3 E: 0.0 0.1 -0.1 0.0 -0.5 B: a2a3", 0.128235, 0.2},
      {"M: e2e4 d2d4 E: 0.35 0.30 B: e2e4", 0.770588, 0.8},
      {"M: e2e4 e2e4 e2e4 e2e4 e2e4 E: 0.35 0.35 0.35 0.35 0.35 B: e2e4", 0.694118, 0.6},
      {"M: e2e5 d2d4 g1f3 c2c4 e2e3 E: 0.35 0.30 0.28 0.20 0.15 B: e2e5", 0.311765, 0.4},
      {"M: e2e4 d2d4 g1f3 c2c4 e2e3 B: e2e4", -0.3, -0.3},
      {"M: e2e4 d2d4 g1f3 c2c4 e2e3 E: 0.35 0.30 0.28 0.20 0.15 B: e2e4 x", -0.3, -0.3},
      {"", -0.3, -0.3}};
  for (const Case& each : cases) {
    EXPECT_NEAR(reward_of(each.text), each.weighted, kTolerance) << each.text;
    EXPECT_NEAR(reward_of(each.text, RewardScheme::graduated), each.graduated, kTolerance)
        << each.text;
  }
}

TEST(PolicyReward, TellsEveryFieldApart) {
  const PolicyScore score = score_policy(
      "", "M: e2e4 d2d4 g1f3 b1c3 a2a3 E: 0.40 0.20 0.28 0.10 0.00 B: c2c4", start_truth());
  EXPECT_NEAR(score.best, 0.5, kTolerance);
  EXPECT_NEAR(score.candidates, 0.6, kTolerance);
  EXPECT_NEAR(score.evals, 0.577208, kTolerance);
  EXPECT_EQ(score.legal_share, 1);
  EXPECT_TRUE(score.best_legal && score.best_in_top && !score.best_is_first);
  EXPECT_EQ(score.eval_errors, 3);
  EXPECT_NEAR(score.eval_error, (.05 + .10 + 0) / 3, kTolerance);
}

// A flat 0.212 in a log says that the truth did not reach the scorer.
TEST(PolicyReward, WithoutAnEngineIsKnownByItsValue) {
  const PolicyTruth truth = start_truth({});
  const char* legal = "M: e2e4 a2a3 E: 0.0 0.0 B: b2b3";
  EXPECT_NEAR(score_policy("", legal, truth).reward, 0.212353, kTolerance);
  EXPECT_LT(score_policy("", "M: e2e4 a2a5 E: 0.0 0.0 B: b2b3", truth).reward, 0.212);
  EXPECT_NEAR(score_policy("", "M: a1a1 E: 0 B: a1a1", truth).reward,
              -0.3 + 1.3 * (2.0 + 0.1) / 8.5, kTolerance);
}

TEST(PolicyReward, GivesTheForcedLabelBack) {
  const std::string rest = " e2e4 d2d4 g1f3 c2c4 e2e3 E: 0.35 0.30 0.28 0.20 0.15 B: e2e4";
  EXPECT_NEAR(score_policy("P: " + kStart + " M:", rest, start_truth()).reward, 1, kTolerance);
  EXPECT_NEAR(score_policy("P: " + kStart, rest, start_truth()).reward, -0.3, kTolerance);
  EXPECT_FALSE(score_policy("... M:", rest.substr(1), start_truth()).format_valid);
}

TEST(PolicyReward, HasTheGrammarOfTheSpecification) {
  const auto valid = [](std::string_view text) { return parse_policy_answer(text).format_valid; };
  EXPECT_TRUE(valid("M: e7e8q E: -0 B: a1a1"));
  EXPECT_TRUE(valid("M:\te2e4\vE:\f10.25\rB:\na2a4\n"));
  for (const char* text :
       {"M: e2e4 E: 1. B: e2e4", "M: e2e4 E: .5 B: e2e4", "M: e2e4 E: +1 B: e2e4",
        "M: e2e4 E: 1e3 B: e2e4", "M: e2e4 E: -- B: e2e4", "M: e2e4 E: - B: e2e4",
        "M: e2e4 E: nan B: e2e4", "M: e2e4 E: 1.2.3 B: e2e4", "M: e7e8k E: 1 B: e2e4",
        "M: i2e4 E: 1 B: e2e4", "M: E: 1 B: e2e4", "M: e2e4 E: B: e2e4", "M: e2e4 E: 1 B:",
        "M: e2e4 E: 1 B: e2e4 e2e4", "x M: e2e4 E: 1 B: e2e4", "e2e4 M: e2e4 E: 1 B: e2e4",
        "M:e2e4 E: 1 B: e2e4", "E: 1 M: e2e4 B: e2e4", "M: M: e2e4 E: 1 B: e2e4"})
    EXPECT_FALSE(valid(text)) << text;
  // Numbers that no double holds are numbers all the same.
  const std::string huge(400, '9');
  EXPECT_TRUE(valid("M: e2e4 E: " + huge + " B: e2e4"));
  EXPECT_EQ(parse_policy_answer("M: e2e4 E: -" + huge + " B: e2e4").evals[0], -HUGE_VAL);
  EXPECT_EQ(parse_policy_answer("M: e2e4 E: 0." + std::string(400, '0') + "1 B: e2e4").evals[0], 0);
}

// Long lists cannot buy candidates, and a number belongs to the move at its own place.
TEST(PolicyReward, DividesByAllThatIsListed) {
  std::string moves, evals;
  for (int i = 0; i < 100; ++i) moves += " a2a3", evals += " 0.0";
  const PolicyScore score =
      score_policy("", "M: e2e4" + moves + " E: 0.35" + evals + " B: e2e4", start_truth());
  EXPECT_TRUE(score.format_valid);
  EXPECT_NEAR(score.candidates, 1.0 / 101, kTolerance);
  EXPECT_NEAR(score.evals, 1.0 / 101, kTolerance);
  const PolicyScore swapped = score_policy("", "M: d2d4 e2e4 E: 0.35 0.30 B: e2e4", start_truth());
  EXPECT_NEAR(swapped.evals, ((1 - .05 / 1.3) + (1 - .05 / 1.35)) / 5, kTolerance);
}

TEST(PolicyReward, OfOtherSchemes) {
  const char* exact = "M: e2e4 d2d4 g1f3 c2c4 e2e3 E: 0.35 0.30 0.28 0.20 0.15 B: e2e4";
  EXPECT_NEAR(reward_of(exact, RewardScheme::additive), 2.0, kTolerance);
  EXPECT_NEAR(reward_of(exact, RewardScheme::rank_decay), 1.0, kTolerance);
  EXPECT_NEAR(reward_of(exact, RewardScheme::cliff), 1.0, kTolerance);
  EXPECT_NEAR(reward_of("", RewardScheme::additive), -0.3, kTolerance);
  EXPECT_NEAR(reward_of("M: x E: y B: z", RewardScheme::additive), 0.2, kTolerance);
  EXPECT_NEAR(reward_of("M: e2e4 d2d4 E: 0.35 0.30 B: a2a3", RewardScheme::additive),
              0.3 + 0.5 * 0.4 + 0.2 * 0.4, kTolerance);
  // Nothing at all, an illegal move, a legal one of no rank, the second with two of five listed.
  EXPECT_NEAR(reward_of("", RewardScheme::rank_decay), -0.25, kTolerance);
  EXPECT_NEAR(reward_of("M: e2e5 E: 0 B: e2e5", RewardScheme::rank_decay), -0.5 - 0.09, kTolerance);
  EXPECT_NEAR(reward_of("M: a2a3 E: 0 B: a2a3", RewardScheme::rank_decay), 0.05, kTolerance);
  EXPECT_NEAR(reward_of("M: e2e4 g1f3 E: -0.35 0.28 B: d2d4", RewardScheme::rank_decay),
              0.5 * 0.8 + 0.3 * (0.4 + 0.1 / 5) + 0.2 * (1 - 0.35 - 0.4), kTolerance);
}

TEST(PolicyReward, TruthIsOfThePosition) {
  EXPECT_FALSE(policy_truth("8/8/8/8/8/8/k7/K7 w - - 0 1", {}).ok());
  const std::vector<RankedMove> illegal = {{"e2e5", 0}}, twice = {{"e2e4", 0}, {"e2e4", 0}};
  EXPECT_FALSE(policy_truth(kStart, illegal).ok());
  EXPECT_FALSE(policy_truth(kStart, twice).ok());
  EXPECT_EQ(start_truth().legal.size(), 20U);
}

ArbiterAnswer e4_truth() { return arbiter_truth(kStart, "e2e4").take_or_throw(); }
double arbiter_reward(const std::string& text, RewardScheme which = RewardScheme::weighted) {
  return score_arbiter(text, e4_truth(), scheme(which)).reward;
}
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

// Section 11 of the specification, A scores.
TEST(ArbiterReward, IsThatOfTheSpecification) {
  const std::string exact = kAfterE4 + "+0.001+0+0";
  EXPECT_NEAR(arbiter_reward(exact), 1, kTolerance);
  EXPECT_NEAR(arbiter_reward(replaced(exact, "KQkq -", "KQkq e3")), 0.960313, kTolerance);
  EXPECT_NEAR(arbiter_reward(kStart + "+0.001+0+0"), 0.906469, kTolerance);
  EXPECT_NEAR(arbiter_reward(kAfterE4 + "+0.5+0+0"), 0.883000, kTolerance);
  EXPECT_NEAR(arbiter_reward(kAfterE4 + "+0.001+1+0"), 0.870000, kTolerance);
  EXPECT_NEAR(arbiter_reward(kAfterE4 + "+0.05+0+1+"), 0.831000, kTolerance);
  EXPECT_NEAR(arbiter_reward(replaced(exact, " b ", " w ")), 0.979310, kTolerance);
  EXPECT_NEAR(arbiter_reward("a/b+0.0+0+0"), 0.612227, kTolerance);
  for (const char* text : {"8/8+0.001+0", "8/8+0.001+false+false", "", "+", "8/8+0.001+0+0+0",
                           "8+0.001+0+0", "8/8++0+0", "8/8+1.+0+0", "8/8+.5+0+0", "8/8+-+0+0"})
    EXPECT_NEAR(arbiter_reward(text), -0.3, kTolerance) << text;
  const ArbiterAnswer illegal = arbiter_truth(kStart, "e2e5").take_or_throw();
  EXPECT_NEAR(score_arbiter(kStart + "+-1.0+0+1", illegal).reward, 1, kTolerance);
  EXPECT_NEAR(score_arbiter(kStart + "+-1+0+1", illegal).reward, 1, kTolerance);
  EXPECT_EQ(arbiter_truth(kStart, "e2e5", 0).take_or_throw().reward, 0);
  // The least of a valid format.
  EXPECT_NEAR(score_arbiter("//////////+9+1+1", {std::string(40, 'x'), 1, false, false}).reward,
              0.233, kTolerance);
}

TEST(ArbiterReward, CountsExactMatches) {
  ArbiterScore score = score_arbiter(kAfterE4 + "+0.001+0+0\n", e4_truth());
  EXPECT_TRUE(score.exact && score.core && score.reward_right && score.terminated_right);
  score = score_arbiter(replaced(kAfterE4, "0 1", "0 2") + "+0.001+0+1", e4_truth());
  EXPECT_TRUE(!score.exact && score.core && !score.truncated_right);
  EXPECT_EQ(score.flags, 0.5);
  score = score_arbiter(kStart + "+0.001+0+0", e4_truth());
  EXPECT_FALSE(score.exact || score.core);
}

TEST(ArbiterReward, OfOtherSchemes) {
  const std::string exact = kAfterE4 + "+0.001+0+0", tail = "+0.001+0+0";
  EXPECT_NEAR(arbiter_reward(exact, RewardScheme::additive), 1.5, kTolerance);
  EXPECT_NEAR(arbiter_reward("x", RewardScheme::additive), -0.3, kTolerance);
  EXPECT_NEAR(arbiter_reward("a/b" + tail, RewardScheme::additive), 0.5, kTolerance);
  EXPECT_NEAR(arbiter_reward(kStart + tail, RewardScheme::additive), 0.5 + 0.5 * (1 - 5 / 58.0),
              kTolerance);
  EXPECT_NEAR(arbiter_reward(exact, RewardScheme::rank_decay), 1, kTolerance);
  EXPECT_NEAR(arbiter_reward(exact, RewardScheme::graduated), 1, kTolerance);
  EXPECT_NEAR(arbiter_reward(exact, RewardScheme::cliff), 0.54, kTolerance);
  EXPECT_NEAR(arbiter_reward(replaced(kAfterE4, "0 1", "0 2") + tail, RewardScheme::cliff), -0.26,
              kTolerance);
  EXPECT_NEAR(arbiter_reward(kStart + tail, RewardScheme::cliff), -0.66, kTolerance);
  EXPECT_NEAR(arbiter_reward("a/b" + tail, RewardScheme::cliff), -0.87, kTolerance);
  EXPECT_NEAR(arbiter_reward("", RewardScheme::cliff), -0.9, kTolerance);
}

TEST(ArbiterReward, DistancesAreThoseOfLevenshtein) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);
  EXPECT_EQ(edit_distance(kStart, kAfterE4), 5);
  EXPECT_EQ(edit_distance(std::string(400, 'a') + 'x', 'y' + std::string(300, 'a')), 101);
  EXPECT_EQ(text_similarity("", ""), 1);
}

TEST(RewardScheme, ScalingsGoFromZeroToOne) {
  for (const ScoreScaling scaling : {ScoreScaling::linear, ScoreScaling::exponential,
                                     ScoreScaling::sigmoid, ScoreScaling::quadratic}) {
    EXPECT_EQ(parse_score_scaling(score_scaling_name(scaling)), scaling);
    EXPECT_NEAR(scaled_score(0, scaling), 0, 0.01);
    EXPECT_NEAR(scaled_score(1, scaling), 1, 0.01);
    EXPECT_LT(scaled_score(0.4, scaling), scaled_score(0.6, scaling));
  }
  EXPECT_NEAR(scaled_score(0.5, ScoreScaling::exponential), 1 / (std::exp(1.5) + 1), 1e-12);
  EXPECT_EQ(scaled_score(0.5, ScoreScaling::sigmoid), 0.5);
  EXPECT_EQ(scaled_score(0.5, ScoreScaling::quadratic), 0.25);
  EXPECT_EQ(parse_reward_scheme("G"), RewardScheme::graduated);
  EXPECT_EQ(parse_reward_scheme("cliff"), RewardScheme::cliff);
  EXPECT_FALSE(parse_reward_scheme("Z"));
}

// Words of the grammar in any order, and bytes: scores stay in range.
TEST(RewardScheme, AnyTextStaysInRange) {
  const std::vector<std::string> words = {
      "M:", "E:", "B:", "e2e4", "d2d4", "e2e5", "0.35",
      "-9", "+",  "/",  "0",    "1",    "\xff", "999999999999999"};
  const PolicyTruth truth = start_truth();
  PhiloxStream draws(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (uint64_t n = draws.below(14); n > 0; --n)
      text += words[draws.below(words.size())] + (draws.below(2) == 0 ? " " : "");
    for (const RewardScheme which :
         {RewardScheme::weighted, RewardScheme::graduated, RewardScheme::additive,
          RewardScheme::rank_decay, RewardScheme::cliff}) {
      const double p = score_policy("M:", text, truth, scheme(which)).reward;
      const double a = score_arbiter(text, e4_truth(), scheme(which)).reward;
      const double least = which == RewardScheme::rank_decay ? -1 : -0.3;
      EXPECT_TRUE(p >= least && p <= (which == RewardScheme::additive ? 2 : 1)) << text << p;
      EXPECT_TRUE(a >= (which == RewardScheme::cliff ? -0.9 : -0.3) && a <= 1.5) << text << a;
    }
  }
}

}  // namespace
}  // namespace fullbore::chess

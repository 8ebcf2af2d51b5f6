#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <sstream>

#include "workloads/chess/engine_pool.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/material_search.h"
#include "workloads/chess/record_file.h"
#include "workloads/chess/tests/commands/chess_training.h"

/// Steps of policy gradients whose truth is a program that does what it should not.
namespace fullbore::chess {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

const char* const kKinds[] = {"dies", "is_silent", "lies", "says_too_little"};

class EngineFaults : public ChessTraining {
 protected:
  /// One record for each kind of fault, in a file, so that a table can have all that an engine says of them: lines of a
  /// position, how it fails first, and what it says then.
  void put_records() {
    const CommandResult made =
        command({"chess", "prepare", "--records", "4", "--truth", "search:1", "--out", "records"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    std::string table;
    size_t number = 0;
    for (const ChessRecord& record : read_all_records(folder_ / "records").take_or_throw()) {
      Position position;
      ASSERT_EQ(parse_fen(record.fen, position), FenError::kNone);
      const std::vector<RankedMove> moves = search_moves(position, {.depth = 2});
      for (size_t rank = 0; rank < moves.size(); ++rank)
        table += fmt::format("{}\t{}\tinfo depth 4 multipv {} score cp {} pv {}\n", record.fen,
                             kKinds[number % std::size(kKinds)], rank + 1,
                             std::llround(100 * moves[rank].eval), moves[rank].move);
      ++number;
    }
    folder_.put("table", table);
  }
  /// Until its answers have the format: else no reward would depend on what the engine says.
  void learn_records() {
    put_records();
    folder_.put("tiny.yaml", kTiny);
    std::vector<std::string> words = {"train",           "tiny.yaml",
                                      "run.dir=warm",    "data.batching=chess",
                                      "train.steps=300", "train.batch_size=4"};
    words.insert(words.end(), kLearned.begin(), kLearned.end());
    const CommandResult result = command(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  /// Says what the table has of the position, at the second question; at the first what `fault` does, a function of $kind.
  std::string engine(const std::string& name, const std::string& fault) {
    return put_program(
        name, fmt::format("kind_of() {{ /bin/grep -F \"$fen\t\" {0}/table | /usr/bin/head -n 1 | "
                          "/usr/bin/cut -f 2; }}\n"
                          "say() {{ /bin/grep -F \"$fen\t\" {0}/table | /usr/bin/cut -f 3; }}\n"
                          "while read -r word rest; do case $word in\n"
                          "uci) echo id name Script; echo uciok;;\n"
                          "isready) echo readyok;;\n"
                          "position) fen=${{rest#fen }};;\n"
                          "go)\n"
                          "  kind=$(kind_of)\n"
                          "  if ! /bin/grep -qF \"$fen\t\" {0}/{1}_asked 2>/dev/null; then\n"
                          "    printf '%s\\t%s\\n' \"$fen\" \"$kind\" >> {0}/{1}_asked\n"
                          "    {2}\n"
                          "  fi\n"
                          "  say; echo bestmove 0000;;\n"
                          "quit) exit 0;;\n"
                          "esac; done\n",
                          folder_.path(), name, fault));
  }
  CommandResult run(const std::string& name, const std::string& engine,
                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"run.dir=" + name,        "rollout.policy_tokens=80",
                                      "train.steps=4",          "reward.truth=stockfish:4",
                                      "chess.engine=" + engine, "data.cache_dir=" + name + "_cache",
                                      "rollout.samples=4"};
    words.insert(words.end(), kLearned.begin(), kLearned.end());
    words.insert(words.end(), more.begin(), more.end());
    return reward(words);
  }
  /// Of the positions that were asked for, how many there are by the way in which the engine fails.
  std::map<std::string, int> asked(const std::string& name) {
    std::map<std::string, int> counts;
    std::istringstream lines(read(name + "_asked"));
    for (std::string line; std::getline(lines, line);) ++counts[line.substr(line.find('\t') + 1)];
    return counts;
  }

  const std::vector<std::string> kLearned = {"data.path=records", "data.validation_fraction=0",
                                             "model.layers=2", "model.width=64",
                                             "optim.learning_rate=3e-3"};
};

/// What the rules alone give an answer whose moves are all legal: a reward beyond it depends on the engine.
constexpr double kByRules = 0.212353 + 1e-6;

// Every position costs a fault and a retry, and nothing else: rewards and weights are those of an engine without faults.
TEST_F(EngineFaults, ThatEndBeforeTheLastAttemptChangeNoReward) {
  learn_records();
  const CommandResult sound = run("sound", engine("well", ":"));
  ASSERT_EQ(sound.exit_code, 0) << sound.err;
  const CommandResult faulty =
      run("faulty",
          engine("ill",
                 "case $kind in dies) exit 3;; is_silent) exec /bin/sleep 1000;;\n"
                 "    lies) echo info depth 4 multipv 1 score cp 9 pv a1a1; echo bestmove a1a1; "
                 "continue;;\n"
                 "    *) echo bestmove 0000; continue;; esac"),
          {"chess.engine_seconds=2"});
  ASSERT_EQ(faulty.exit_code, 0) << faulty.err;
  std::map<std::string, int> faults = asked("ill");
  for (const char* kind : kKinds) EXPECT_EQ(faults[kind], 1) << kind;
  constexpr int kPositions = 4;
  EXPECT_THAT(told("faulty", "reward"), SizeIs(4));
  EXPECT_THAT(told("faulty", "policy/reward"), Contains(Gt(kByRules)));
  EXPECT_THAT(told("faulty", "equal_groups"), Contains(Lt(1))) << "something is learned";
  EXPECT_EQ(told("faulty", "reward"), told("sound", "reward"));
  EXPECT_EQ(weights("faulty"), weights("sound"));
  EXPECT_NE(weights("faulty"), weights("warm"));
  const auto last = [&](const std::string& run, const std::string& name) {
    const std::vector<double> values = told(run, "engine/" + name);
    return values.empty() ? -1 : values.back();
  };
  for (const char* name : {"retries", "died", "silent", "refused", "unranked"})
    EXPECT_EQ(last("sound", name), 0) << name;
  // A machine that is busy may let a sound answer come late: that is one more silence, and one more retry.
  EXPECT_GE(last("faulty", "retries"), kPositions);
  EXPECT_EQ(last("faulty", "died"), faults["dies"]);
  EXPECT_GE(last("faulty", "silent"), faults["is_silent"]);
  EXPECT_EQ(last("faulty", "refused"), faults["lies"] + faults["says_too_little"]);
  EXPECT_GE(last("faulty", "starts"), kPositions);
  EXPECT_EQ(last("faulty", "unranked"), 0);
  EXPECT_THAT(faulty.err, HasSubstr("engine   Script: 8 positions")) << "each of them twice";
  EXPECT_THAT(faulty.err, HasSubstr("0 prompts judged by the rules alone"));
}

// One that greets and dies of each question costs retries and a count, and the run says so, at once and at its end.
TEST_F(EngineFaults, ThatDoNotEndAreToldAndCounted) {
  learn_records();
  const CommandResult result = run("grpo", engine("dead", "exit 0"), {"train.steps=3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(told("grpo", "engine/unranked"), (std::vector<double>{0, 0, 0})) << "it comes back";
  const std::string gone = put_program("gone",
                                       "while read -r word rest; do case $word in\n"
                                       "uci) echo id name Mortal; echo uciok;;\n"
                                       "isready) echo readyok;;\n"
                                       "go|quit) exit 0;;\n"
                                       "esac; done\n");
  const CommandResult without = run("without", gone, {"train.steps=2"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_EQ(told("without", "engine/unranked"), (std::vector<double>{2, 4}));
  EXPECT_THAT(told("without", "engine/retries"), Each(Gt(0)));
  EXPECT_THAT(without.err, HasSubstr("step 1: prompts are judged by the rules alone"));
  EXPECT_THAT(without.err, Not(HasSubstr("step 2: prompts are judged")));
  EXPECT_THAT(without.err, HasSubstr("in 4 attempts: it ended"));
  EXPECT_THAT(without.err, HasSubstr("4 prompts judged by the rules alone"));
  // By the rules alone no move is better than another that is legal.
  EXPECT_THAT(told("without", "policy/reward"), Each(Le(kByRules)));
  EXPECT_GT(told("grpo", "reward").front(), told("without", "reward").front());
}

// What it said in one run is known to the next.
TEST_F(EngineFaults, AnalysesAreKeptForTheNextRun) {
  learn_records();
  const std::string program = engine("well", ":");
  ASSERT_EQ(run("first", program, {"data.cache_dir=cache"}).exit_code, 0);
  const CommandResult second = run("second", program, {"data.cache_dir=cache"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(told("first", "engine/cached").back(), 4);
  EXPECT_EQ(told("second", "engine/cached").back(), 8);
  EXPECT_EQ(weights("second"), weights("first"));
  EXPECT_THAT(second.err, Not(HasSubstr("damaged")));
  // A file that something else wrote to is told, and what is missing in it is analysed anew.
  folder_.put("cache/analyses.tsv", "no analysis\n" + read("cache/analyses.tsv").substr(0, 200));
  const CommandResult third = run("third", program, {"data.cache_dir=cache"});
  ASSERT_EQ(third.exit_code, 0) << third.err;
  EXPECT_THAT(third.err, HasSubstr("step 1: cache/analyses.tsv: 2 lines are damaged"));
  EXPECT_LT(told("third", "engine/cached").back(), 8);
  EXPECT_EQ(weights("third"), weights("first"));
  // One that cannot be read or written costs its analyses, never the run.
  std::filesystem::create_directories(folder_ / "blocked/analyses.tsv");
  const CommandResult fourth = run("fourth", program, {"data.cache_dir=blocked"});
  ASSERT_EQ(fourth.exit_code, 0) << fourth.err;
  EXPECT_THAT(fourth.err, HasSubstr("every position is analysed anew"));
  EXPECT_THAT(fourth.err, HasSubstr("what engines say is not kept for later runs"));
  EXPECT_EQ(weights("fourth"), weights("first"));
}

// The engine that is installed.
TEST_F(EngineFaults, StockfishIsAskedOncePerPosition) {
  if (find_stockfish().empty()) GTEST_SKIP() << stockfish_missing_text();
  warm_up();
  const auto cached = [&](const std::string& run) {
    const CommandResult result = reward(
        {"run.dir=" + run, "train.steps=1", "reward.truth=stockfish:1", "data.cache_dir=cache"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return told(run, "engine/cached");
  };
  EXPECT_EQ(cached("first"), std::vector<double>{0});
  EXPECT_EQ(cached("second"), std::vector<double>{2});
}

}  // namespace
}  // namespace fullbore::chess

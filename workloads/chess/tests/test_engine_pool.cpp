#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "tests/support/scratch_folder.h"
#include "workloads/chess/engine_pool.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/piped_program.h"
#include "workloads/chess/record_recipes.h"
#include "workloads/chess/truth_source.h"
#include "workloads/chess/uci_analysis.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

const std::string kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
const std::string kAnswer =
    "info depth 1 multipv 1 score cp 9 pv a2a3\n"
    "info depth 1 multipv 2 score cp 8 pv b2b3\n"
    "info depth 2 multipv 1 score cp 35 nodes 9 pv e2e4 e7e5\n"
    "info depth 2 multipv 2 score cp -30 pv d2d4\n"
    "info depth 3 multipv 1 score cp 99 pv a2a3\n"
    "bestmove e2e4\n";
const std::vector<RankedMove> kTop = {{"e2e4", .35}, {"d2d4", -.30}};

Position start() {
  Position position;
  EXPECT_EQ(parse_fen(kStart, position), FenError::kNone);
  return position;
}

TEST(UciInfo, ScoresArePawnsOfTheSideToMove) {
  const auto eval = [](const std::string& score) {
    const UciInfo info = parse_uci_info("info depth 4 seldepth 5 multipv 3 score " + score +
                                        " nodes 1 nps 2 tbhits 0 time 1 pv e7e8q a1a2");
    EXPECT_TRUE(info.is_ranked) << score;
    EXPECT_EQ(info.rank, 3);
    EXPECT_EQ(info.depth, 4);
    EXPECT_EQ(info.move.move, "e7e8q");
    return info.move.eval;
  };
  EXPECT_EQ(eval("cp -177"), -1.77);
  EXPECT_EQ(eval("mate 2"), 999.98);
  EXPECT_EQ(eval("mate -3"), -999.97);
  for (const char* line :
       {"info string NNUE evaluation depth 4 score cp 1 pv e2e4",
        "info depth 4 score cp 1 lowerbound pv e2e4", "info depth 4 score cp x pv e2e4",
        "info depth 4 pv e2e4", "info score cp 1 pv e2e4", "info depth 4 score cp 1 pv e2e9",
        "info depth 4 score cp 99999999999999999999 pv e2e4", "bestmove e2e4", ""})
    EXPECT_FALSE(parse_uci_info(line).is_ranked) << line;
}

TEST(UciAnalysis, IsTheLastCompleteSet) {
  const Position position = start();
  UciAnalysis analysis(position, 2);
  std::string_view rest = kAnswer;
  while (!rest.empty()) {
    analysis.add(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(rest.find('\n') + 1);
  }
  EXPECT_EQ(analysis.result().take_or_throw(), kTop);
  EXPECT_EQ(UciAnalysis(position, 500).expected(), 20U);
  EXPECT_THAT(UciAnalysis(position, 2).result().error(), HasSubstr("0 of 2 ranked moves"));
  EXPECT_THAT(analysis_problem(position, 2, {{"e2e4", 0}, {"e2e4", 0}}), HasSubstr("twice"));
  EXPECT_THAT(analysis_problem(position, 1, {{"e2e5", 0}}), HasSubstr("no legal move"));
}

/// A program of a few lines of shell that is asked as an engine. $n counts what it was asked, over all its processes.
class EnginePoolTest : public ::testing::Test {
 protected:
  std::string engine(const std::string& on_go) {
    std::string path = folder_.put(
        "engine", fmt::format("#!/bin/sh\n"
                              "while read -r word rest; do case $word in\n"
                              "uci) echo id name Script 1; echo uciok;;\n"
                              "isready) echo readyok;;\n"
                              "quit) exit 0;;\n"
                              "go) echo x >> {0}/asked; n=$(/usr/bin/wc -l < {0}/asked)\n{1};;\n"
                              "esac; done\n",
                              folder_.path(), on_go));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  EngineOptions options(const std::string& on_go) {
    EngineOptions all;
    all.path = engine(on_go);
    all.processes = 1;
    all.moves = 2;
    all.settings.clear();
    all.answer_seconds = 20;
    all.back_off_seconds = 0.001;
    return all;
  }
  std::string answer() const { return fmt::format("/bin/cat {}", folder_.put("answer", kAnswer)); }
  testing::ScratchFolder folder_;
};

TEST_F(EnginePoolTest, AnswersAndKnowsWhatItAnswered) {
  EngineOptions given = options(answer());
  given.cache_path = folder_ / "sub/cache";
  {
    EnginePool pool(given);
    EXPECT_EQ(pool.engine_name(), "Script 1");
    const auto first = pool.submit(kStart), second = pool.submit(kStart);
    EXPECT_EQ(first.get().value(), kTop);
    EXPECT_EQ(second.get().value(), kTop);
    EXPECT_EQ(pool.submit(kStart).get().value(), kTop);
    EXPECT_EQ(
        pool.counts(),
        (EngineCounts{.positions = 3, .cached = pool.counts().cached, .analysed = 1, .starts = 1}));
    EXPECT_THAT(pool.submit("8/8").get().error(), HasSubstr("field"));
    EXPECT_THAT(pool.submit("8/8/8/8/8/6k1/8/6K1 w - - 0 1").get().ok(), false);
    EXPECT_THAT(pool.submit("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").get().error(),
                HasSubstr("no legal move"));
  }
  EnginePool again(given);
  EXPECT_EQ(again.submit(kStart).get().value(), kTop);
  EXPECT_EQ(again.counts().cached, 1);
  given.depth = 5;  // another question
  EnginePool deeper(given);
  EXPECT_EQ(deeper.submit(kStart).get().value(), kTop);
  EXPECT_EQ(deeper.counts().cached, 0);
}

TEST_F(EnginePoolTest, DeathAndLiesCostARetryAndACount) {
  const std::string good = answer();
  EnginePool pool(options(fmt::format(
      "case $n in 1) exit 3;; 2) echo info depth 1 multipv 1 score cp 1 pv e2e5; echo info depth 1 "
      "multipv 2 score cp 1 pv d2d4; echo bestmove e2e5;; 3) echo bestmove e2e4;; *) {};; esac",
      good)));
  EXPECT_EQ(pool.submit(kStart).get().value(), kTop);
  EXPECT_EQ(
      pool.counts(),
      (EngineCounts{
          .positions = 1, .analysed = 1, .retries = 3, .starts = 4, .died = 1, .refused = 2}));
}

TEST_F(EnginePoolTest, SilenceAndFloodsEnd) {
  EngineOptions given =
      options(fmt::format("case $n in 1) ;; 2) exec /usr/bin/yes info;; 3) /usr/bin/head -c 200000 "
                          "/dev/zero;; *) {};; esac",
                          answer()));
  given.answer_seconds = 0.4;
  EnginePool pool(given);
  EXPECT_EQ(pool.submit(kStart).get().value(), kTop);
  const EngineCounts counts = pool.counts();
  EXPECT_EQ(counts.retries, 3);
  EXPECT_EQ(counts.silent + counts.refused, 3);
  EXPECT_GE(counts.silent, 1);
  EXPECT_GE(counts.refused, 1);
}

TEST_F(EnginePoolTest, GivesUpAPositionAndGoesOn) {
  EngineOptions given = options(fmt::format("if [ $n -le 2 ]; then exit; fi; {}", answer()));
  given.attempts = 2;
  EnginePool pool(given);
  const EngineAnalysis failed = pool.submit(kStart).get();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error(), HasSubstr("no analysis of " + kStart + " in 2 attempts: it ended"));
  EXPECT_EQ(pool.submit(kStart).get().value(), kTop);
  EXPECT_EQ(pool.counts().failed, 1);
}

// The engine's moves count where there is one, else the record's; without either the rules alone, which is told.
TEST_F(EnginePoolTest, TruthIsOnItsWayWhileAnswersAreGenerated) {
  EngineOptions given = options(fmt::format("if [ $n -gt 1 ]; then exit; fi; {}", answer()));
  given.attempts = 1;
  EnginePool pool(given);
  const std::vector<size_t> order = {0};
  const ChessRecord record = policy_record(kStart, {{"a2a3", 9}}, order, short_format());
  TruthSource source({}, &pool, 0.32), alone({});
  EXPECT_EQ(alone.begin(record).get().take_or_throw().policy().evals, std::vector<double>{9});
  EXPECT_EQ(alone.unranked(), 0);
  const PolicyTruth truth = source.begin(record).get().take_or_throw().policy();
  EXPECT_EQ(truth.top[0], *parse_uci_move("e2e4"));
  EXPECT_EQ(truth.evals, (std::vector<double>{.32, -.30}));
  EXPECT_EQ(source.unranked(), 0);
  ChessRecord other = record;
  other.fen = "8/8/8/8/8/k7/8/K6R w - - 0 1";
  const RecordTruth unranked = source.begin(other).get().take_or_throw();
  EXPECT_EQ(source.unranked(), 1);
  EXPECT_NEAR(unranked.score(" h1h2 E: 0 B: h1h2").reward(), 0.212353, 1e-6);
}

// One that is gone for good does not cost every position its deadlines.
TEST_F(EnginePoolTest, IsRestedWhereItGivesEveryPositionUp) {
  EngineOptions given = options("exit 1");
  given.attempts = 2;
  given.back_off_seconds = 0;
  EnginePool pool(given);
  std::vector<std::shared_future<EngineAnalysis>> all;
  for (uint64_t i = 0; i < 40; ++i) all.push_back(pool.submit(endgame_fen(1, i)));
  EXPECT_THAT(all.front().get().error(), HasSubstr("in 2 attempts: it ended"));
  EXPECT_THAT(all.back().get().error(), HasSubstr("8 positions or more in a row"));
  EXPECT_EQ(pool.counts().failed, 40);
  EXPECT_LT(pool.counts().retries, 20);
}

TEST_F(EnginePoolTest, WaitsForNobodyWhenItEnds) {
  std::shared_future<EngineAnalysis> first, second;
  {
    EnginePool pool(options("exec /bin/sleep 1000"));
    first = pool.submit(kStart);
    second = pool.submit("8/8/8/8/8/k7/8/K6R w - - 0 1");
  }
  EXPECT_FALSE(first.get().ok());
  EXPECT_FALSE(second.get().ok());
}

TEST_F(EnginePoolTest, WhatIsNoEngineIsRefused) {
  const auto problem = [](const EngineOptions& given) -> std::string {
    try {
      const EnginePool pool(given);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EngineOptions given = options("");
  given.path = folder_ / "none";
  EXPECT_THAT(problem(given), HasSubstr("none: No such file"));
  given.path = folder_.path();
  EXPECT_THAT(problem(given), HasSubstr("no program"));
  given.path = "/bin/true";
  EXPECT_THAT(problem(given), HasSubstr("does not answer 'uci' as a chess engine: it ended"));
  given.path = "/bin/cat";
  given.start_seconds = 0.05;
  EXPECT_THAT(problem(given), HasSubstr("it says nothing in time"));
  given.nodes = 3;
  EXPECT_THAT(problem(given), HasSubstr("one of depth and nodes"));
  given = options("");
  given.settings = {{"Hash", "1\nquit"}};
  EXPECT_THAT(problem(given), HasSubstr("line end"));
  EXPECT_THAT(stockfish_missing_text(), HasSubstr("apt install stockfish"));
}

// Whatever this process has open and whatever is in its environment stays here.
TEST_F(EnginePoolTest, TheProcessHasNothingOfOurs) {
  const int file = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  const std::string script =
      folder_.put("look",
                  "#!/bin/sh\nread -r word\necho $(/bin/ls /proc/self/fd | /usr/bin/wc -l)\n"
                  "/usr/bin/tr '\\0' '\\n' < /proc/$$/environ\necho $(pwd)\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Result<PipedProgram> child = PipedProgram::start(script);
  ASSERT_TRUE(child.ok()) << child.error();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ASSERT_TRUE(child.value().write("go\n", deadline));
  std::string all;
  std::string_view line;
  while (child.value().read_line(line, deadline, [] { return false; }) == LineWait::line)
    all += fmt::format("{}\n", line);
  ::close(file);
  // 0, 1, 2 and the folder that is listed.
  EXPECT_EQ(all, "4\n/\n");
  ::signal(SIGPIPE, SIG_DFL);
  while (child.value().write("x\n", deadline)) {
  }
}

/// It has ended: there is no such process, or only what its parent has not asked for.
bool has_ended(pid_t process) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", process));
  return !stat.ok() || stat.value().find(") Z ") != std::string::npos;
}

TEST(PipedProgram, EndsWithTheProcessThatStartedIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t starter = ::fork();
  if (starter == 0) {
    const Result<PipedProgram> child = PipedProgram::start("/bin/sleep", {"1000"});
    const pid_t id = child.ok() ? child.value().id() : -1;
    ::_exit(::write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1);
  }
  pid_t child = -1;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  int status = 0;
  ASSERT_EQ(::waitpid(starter, &status, 0), starter);
  ASSERT_GT(child, 0);
  for (int i = 0; i < 2000 && !has_ended(child); ++i) ::usleep(5000);
  EXPECT_TRUE(has_ended(child));
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace fullbore::chess

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/ckpt/checkpoint_store.h"
#include "fullbore/lab/runs/run_curves.h"
#include "fullbore/lab/runs/run_difference.h"
#include "fullbore/lab/runs/run_folder.h"
#include "fullbore/lab/runs/run_page.h"
#include "fullbore/monitor/json_lines.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/train/run_directory.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScratchFolder;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A run of a scratch folder, as training leaves it.
class MadeRun {
 public:
  MadeRun(const ScratchFolder& folder, const std::string& name) : path_(folder / name) {
    std::filesystem::create_directories(path_ + "/checkpoints");
    folder.put(name + "/config.resolved.yaml", "train:\n  steps: 20\n");
  }
  const std::string& path() const { return path_; }

  void summarize(const std::string& status) const {
    RunSummary summary;
    summary.status = status;
    summary.steps = 20;
    summary.best_validation_loss = 1.5;
    summary.maker = {"0a1b", "cpu", "a <processor>", "avx2", 4};
    write_summary(path_ + "/summary.json", summary).take_or_throw();
  }
  void record(const std::vector<nlohmann::ordered_json>& lines) const {
    JsonLines file = JsonLines::open(path_ + "/metrics.jsonl").take_or_throw();
    for (const auto& line : lines) file.write(line).take_or_throw();
  }
  void save(const std::vector<NamedTensor>& weights, uint64_t seed = 1) const {
    RunRecord record;
    record.step = 20;
    record.seed = seed;
    record.identity = {{"data", "numbers"}, {"model", "nobody"}};
    record.config = "{}";
    record.tokenizer = "{}";
    CheckpointContents contents;
    contents.groups = {{.name = "weights", .tensors = weights}};
    contents.texts = to_texts(record);
    CheckpointStore(path_ + "/checkpoints", 2).save(20, contents, false).take_or_throw();
  }

 private:
  std::string path_;
};

TEST(RunFolder, TellsHowARunStands) {
  const ScratchFolder folder;
  const MadeRun run(folder, "a");
  EXPECT_EQ(look_at_run(run.path()).status, "unknown");
  run.summarize("running");
  EXPECT_EQ(look_at_run(run.path() + "//").status, "killed");
  {
    const RunDirectory owner = RunDirectory::open(run.path());
    EXPECT_EQ(look_at_run(run.path()).status, "running");
  }
  run.summarize("completed");
  const RunFolder found = look_at_run(run.path());
  EXPECT_EQ(found.status, "completed");
  EXPECT_EQ(found.name, "a");
  EXPECT_EQ(found.steps(), 20);
  EXPECT_EQ(found.figure("best_validation_loss"), 1.5);
  EXPECT_TRUE(std::isnan(found.figure("status")));
  EXPECT_GT(found.bytes, 0);
  EXPECT_TRUE(found.config);
  EXPECT_THAT(found.problems, ElementsAre());
  folder.put("a/config.resolved.yaml", "model: [");
  const RunFolder damaged = look_at_run(run.path());
  EXPECT_FALSE(damaged.config);
  ASSERT_EQ(damaged.problems.size(), 1U);
  EXPECT_THAT(damaged.problems[0], HasSubstr("config.resolved.yaml"));
}

TEST(RunFolder, OthersAreNoRuns) {
  const ScratchFolder folder;
  const MadeRun b(folder, "b"), a(folder, "a"), hidden(folder, ".c");
  std::filesystem::create_directories(folder / "empty");
  folder.put("file", "");
  EXPECT_THAT(runs_in(folder.path()), ElementsAre(a.path(), b.path()));
  EXPECT_THROW(look_at_run(folder / "empty"), DataError);
  EXPECT_THROW(look_at_run(folder / "missing"), DataError);
  EXPECT_THROW(runs_in(folder / "missing"), DataError);
}

TEST(RunFolder, LocksAreReadAsTheSystemTellsThem) {
  const ScratchFolder folder;
  struct stat status {};
  ASSERT_EQ(stat(folder.path().c_str(), &status), 0);
  const auto locks = [&](const char* kind, uint64_t inode) {
    return folder.put("locks",
                      fmt::format("7: {}  ADVISORY  WRITE 4711 {:02x}:{:02x}:{} 0 EOF\n", kind,
                                  major(status.st_dev), minor(status.st_dev), inode));
  };
  EXPECT_TRUE(is_locked(folder.path(), locks("FLOCK", status.st_ino)));
  EXPECT_FALSE(is_locked(folder.path(), locks("POSIX", status.st_ino)));
  EXPECT_FALSE(is_locked(folder.path(), locks("FLOCK", status.st_ino + 1)));
  EXPECT_FALSE(is_locked(folder.path(), folder.put("locks", "\n: FLOCK\xff\n")));
  EXPECT_FALSE(is_locked(folder.path(), folder / "none"));
}

TEST(RunFolder, RemovesARunAndNothingElse) {
  const ScratchFolder folder;
  const MadeRun run(folder, "a");
  folder.put("kept", "mine");
  std::filesystem::create_symlink(folder / "kept", run.path() + "/link");
  std::filesystem::create_directory_symlink(run.path(), folder / "b");
  std::filesystem::create_directories(folder / "empty");
  // An earlier removal was killed.
  std::filesystem::create_directories(folder / ".a.removed/checkpoints");
  EXPECT_THROW(static_cast<void>(remove_run(folder / "b")), DataError);
  EXPECT_THROW(static_cast<void>(remove_run(folder / "empty")), DataError);
  {
    const RunDirectory owner = RunDirectory::open(run.path());
    EXPECT_THROW(static_cast<void>(remove_run(run.path())), DataError);
  }
  ASSERT_TRUE(std::filesystem::exists(run.path()));
  remove_run(run.path() + '/').take_or_throw();
  EXPECT_FALSE(std::filesystem::exists(run.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / ".a.removed"));
  EXPECT_EQ(read_file(folder / "kept").value(), "mine");
}

TEST(RunCurves, TimeGoesOnBehindAResumption) {
  const ScratchFolder folder;
  const MadeRun run(folder, "a");
  run.record({{{"kind", "train"}, {"step", 10}, {"loss", 4.0}, {"seconds", 5.0}},
              {{"kind", "train"}, {"step", 20}, {"loss", nullptr}, {"seconds", 9.0}},
              {{"kind", "train"}, {"step", 30}, {"loss", 2.0}, {"seconds", 3.0}},
              {{"kind", "train"}, {"loss", 7.0}}});
  const RunCurves curves = read_run_curves(run.path()).take_or_throw();
  EXPECT_THAT(curves.names(), ElementsAre("loss"));
  const ChartCurve by_time = chart_curve(curves, "loss", "l", CurveAxis::time);
  ASSERT_EQ(by_time.points.size(), 3U);
  EXPECT_EQ(by_time.points[0], std::make_pair(5.0, 4.0));
  EXPECT_TRUE(std::isnan(by_time.points[1].second));
  EXPECT_EQ(by_time.points[2], std::make_pair(12.0, 2.0));
  // Weights halve with each value that is one: (4 / 2 + 2) / (1 / 2 + 1).
  EXPECT_DOUBLE_EQ(chart_curve(curves, "loss", "l", CurveAxis::step, 1).points[2].second, 8.0 / 3);
  EXPECT_TRUE(chart_curve(curves, "gain", "g").points.empty());
  EXPECT_FALSE(read_run_curves(folder / "none").ok());
}

TEST(RunDifference, SettingsAndMakers) {
  RunFolder a, b;
  a.config.emplace();
  b.config.emplace();
  b.config->train.steps = a.config->train.steps + 1;
  b.config->run.dir = "elsewhere";
  const std::vector<Difference> settings = setting_differences(a, b);
  ASSERT_EQ(settings.size(), 1U);
  EXPECT_EQ(settings[0].what, "train.steps");
  a.summary["made_by"] = {{"device", "cpu"}, {"workers", 2}};
  const std::vector<Difference> makers = maker_differences(a, b);
  ASSERT_EQ(makers.size(), 2U);
  EXPECT_EQ(makers[1].what, "workers");
  EXPECT_EQ(makers[1].a, "2");
  EXPECT_EQ(makers[1].b, "-");
}

TEST(RunDifference, WeightsTensorByTensor) {
  const ScratchFolder folder;
  const MadeRun first(folder, "a"), second(folder, "b");
  const float same[] = {1, 2}, x[] = {3, 4}, y[] = {3, 4.5}, hole[] = {3, static_cast<float>(kNan)};
  const int32_t whole[] = {5};
  const TensorType two = {DType::f32, {2}};
  first.save({{"same", two, same},
              {"moved", two, x},
              {"hole", two, x},
              {"kind", two, x},
              {"left", two, x}});
  second.save({{"same", two, same},
               {"moved", two, y},
               {"hole", two, hole},
               {"kind", {DType::i32, {1}}, whole},
               {"right", two, x}},
              9);
  const RunFolder a = look_at_run(first.path()), b = look_at_run(second.path());
  const auto all = weight_differences(a, b).take_or_throw();
  std::map<std::string, TensorDifference> by_name;
  for (const TensorDifference& tensor : all) by_name[tensor.name] = tensor;
  ASSERT_EQ(all.size(), 6U);
  EXPECT_TRUE(by_name["same"].equal);
  EXPECT_EQ(by_name["same"].relative, 0);
  EXPECT_FALSE(by_name["moved"].equal);
  EXPECT_EQ(by_name["moved"].largest, 0.5);
  EXPECT_DOUBLE_EQ(by_name["moved"].relative, 0.1);
  EXPECT_TRUE(std::isnan(by_name["hole"].largest));
  EXPECT_EQ(by_name["kind"].problem, "f32[2] and i32[1]");
  EXPECT_EQ(by_name["left"].problem, "only in the first");
  EXPECT_EQ(by_name["right"].problem, "only in the second");
  const auto identity = identity_differences(a, b).take_or_throw();
  ASSERT_EQ(identity.size(), 1U);
  EXPECT_EQ(identity[0].what, "random key");
  std::filesystem::remove_all(second.path() + "/checkpoints");
  EXPECT_FALSE(weight_differences(a, b).ok());
}

TEST(RunPage, StandsAloneAndEscapesWhatItShows) {
  const ScratchFolder folder;
  const MadeRun run(folder, "<b>");
  run.summarize("completed");
  run.record(
      {{{"kind", "train"}, {"step", 1}, {"loss", 4.0}, {"flat", 1.0}, {"policy/reward", 0.1}},
       {{"kind", "evaluation"}, {"step", 2}, {"validation_loss", 3.5}},
       {{"kind", "evaluation"}, {"step", 3}, {"validation_loss", 3.0}},
       {{"kind", "train"}, {"step", 4}, {"loss", 2.0}, {"flat", 1.0}, {"policy/reward", 0.2}}});
  const RunCurves curves = read_run_curves(run.path()).take_or_throw();
  const std::vector<CurveGroup> groups = curve_groups(curves);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].metrics, ElementsAre("loss", "validation_loss"));
  EXPECT_THAT(groups[1].metrics, ElementsAre("policy/reward"));
  const std::string page = run_page(look_at_run(run.path()), curves);
  EXPECT_THAT(page, HasSubstr("<h1>&lt;b&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("a &lt;processor&gt;"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  const PagePart parts[] = {{"A & B", "<p>as it is</p>\n"}};
  EXPECT_THAT(run_page(look_at_run(run.path()), curves, parts),
              HasSubstr("<h2>A &amp; B</h2>\n<p>as it is</p>\n<h2>Curves</h2>"));
}

TEST(RunPage, CallsNothingTokensThatIsNot) {
  const ScratchFolder folder;
  const MadeRun run(folder, "images");
  run.summarize("completed");
  RunFolder looked = look_at_run(run.path());
  looked.summary["tokens_per_second"] = 12.5;
  looked.summary["samples_per_second"] = 12.5;
  EXPECT_THAT(run_page(looked, {}), Not(HasSubstr("tokens a second")));
  looked.summary["tokens_per_second"] = 100.0;
  EXPECT_THAT(run_page(looked, {}), HasSubstr("tokens a second"));
}

}  // namespace
}  // namespace fullbore

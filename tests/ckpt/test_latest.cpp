#include "fullbore/ckpt/latest.h"

#include <cmath>
#include <limits>

#include "fullbore/base/files.h"
#include "tests/ckpt/checkpoint_fixture.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TensorSet;

class Latest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, int64_t step) {
    RunRecord record;
    record.step = step;
    EXPECT_TRUE(write_checkpoint(folder_ / name, tensors_.tensors(), to_metadata(record)).ok());
    return folder_ / name;
  }
  void flip_last_byte(const std::string& path) {
    std::string bytes = read_file(path).value();
    bytes.back() ^= 1;
    ASSERT_TRUE(write_file_atomically(path, bytes).ok());
  }
  LatestCheckpoint find() { return find_latest(folder_.path()).take_or_throw(); }

  testing::ScratchFolder folder_;
  const TensorSet tensors_;
};

TEST_F(Latest, TheMostStepsWin) {
  EXPECT_FALSE(find().found);
  write(step_checkpoint_name(9), 9);
  write(step_checkpoint_name(1000), 1000);
  EXPECT_EQ(find().found->record.step, 1000);
  const std::string last = write(kLastCheckpointName, 1200);
  EXPECT_EQ(find().found->record.step, 1200);
  EXPECT_EQ(find().found->checkpoint.path(), last);
  EXPECT_TRUE(tensors_.is_in(find().found->checkpoint));
  EXPECT_TRUE(find().rejected.empty());
  write(kLastCheckpointName, 3);  // copied there by hand: the steps count, not the name
  EXPECT_EQ(find().found->record.step, 1000);
}

TEST_F(Latest, DamagedOnesArePassedOverAndNamed) {
  write(step_checkpoint_name(10), 10);
  const std::string newer = write(step_checkpoint_name(20), 20);
  const std::string newest = write(kLastCheckpointName, 30);
  flip_last_byte(newest);
  EXPECT_EQ(find().found->record.step, 20);
  EXPECT_THAT(find().rejected, ElementsAre(HasSubstr(newest + ": bytes ")));
  std::filesystem::resize_file(newer, 100);
  EXPECT_EQ(find().found->record.step, 10);
  EXPECT_EQ(find().rejected.size(), 2U);
  flip_last_byte(folder_ / step_checkpoint_name(10));
  EXPECT_FALSE(find().found);
  EXPECT_EQ(find().rejected.size(), 3U);
}

TEST_F(Latest, OtherFilesAreLeftAlone) {
  folder_.put("config.resolved.yaml", "x");
  folder_.put("last.safetensors.12.tmp", "torn");
  folder_.put("best.safetensors", "not looked at");
  EXPECT_FALSE(find().found);
  EXPECT_TRUE(find().rejected.empty());
  folder_.put("step-x.safetensors", "no checkpoint");
  EXPECT_THAT(find().rejected, ElementsAre(HasSubstr("step-x.safetensors: byte 0")));
}

TEST_F(Latest, ACheckpointOfNoRunIsNamed) {
  ASSERT_TRUE(write_checkpoint(folder_ / kLastCheckpointName, tensors_.tensors(), {}).ok());
  EXPECT_THAT(find().rejected,
              ElementsAre(HasSubstr("last.safetensors: the metadata lacks 'config'")));
}

TEST_F(Latest, AFolderThatIsMissingIsAFailure) {
  EXPECT_THAT(find_latest(folder_ / "none").error(),
              HasSubstr("cannot read the folder " + (folder_ / "none") + ": No such file"));
}

TEST_F(Latest, TheRecordComesBackWhole) {
  const RunRecord record{.step = 123'456'789'012,
                         .data_position = std::numeric_limits<uint64_t>::max(),
                         .seed = std::numeric_limits<uint64_t>::max() - 1,
                         .config = "run:\n  dir: \"a\\b\u00E9\"\n",
                         .tokenizer = R"({"characters":"\n\"a"})",
                         .metrics = {{"loss", 0.1 + 0.2},
                                     {"best", std::numeric_limits<double>::infinity()},
                                     {"tiny", 5e-324}}};
  const std::string path = folder_ / kLastCheckpointName;
  ASSERT_TRUE(write_checkpoint(path, {}, to_metadata(record)).ok());
  EXPECT_EQ(read_run_record(read_checkpoint(path).value()).take_or_throw(), record);
  RunRecord diverged;
  diverged.metrics["loss"] = std::nan("");
  ASSERT_TRUE(write_checkpoint(path, {}, to_metadata(diverged)).ok());
  EXPECT_TRUE(std::isnan(
      read_run_record(read_checkpoint(path).value()).take_or_throw().metrics.at("loss")));
}

TEST_F(Latest, AMalformedRecordIsNamedByKey) {
  const std::pair<const char*, const char*> cases[] = {{"step", "-1"},
                                                       {"step", "1x"},
                                                       {"step", ""},
                                                       {"data_position", "-3"},
                                                       {"seed", "1e3"},
                                                       {"metrics", "[1]"},
                                                       {"metrics", "{\"a\":1}"},
                                                       {"metrics", "{\"a\":\"one\"}"}};
  for (const auto& [key, value] : cases) {
    Metadata metadata = to_metadata(RunRecord{});
    metadata[key] = value;
    const std::string path = folder_ / kLastCheckpointName;
    ASSERT_TRUE(write_checkpoint(path, {}, metadata).ok());
    EXPECT_THAT(read_run_record(read_checkpoint(path).value()).error(),
                HasSubstr(fmt::format("{}: metadata '{}' is '{}', ", path, key, value)));
  }
}

}  // namespace
}  // namespace fullbore

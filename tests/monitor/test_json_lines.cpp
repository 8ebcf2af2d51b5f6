#include "fullbore/monitor/json_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/monitor/json_line_reader.h"

namespace fullbore {
namespace {

class MetricsFile : public ::testing::Test {
 protected:
  MetricsFile() : path_(::testing::TempDir() + "fullbore_metrics.jsonl") {
    std::filesystem::remove(path_);
  }
  ~MetricsFile() override { std::filesystem::remove(path_); }

  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string text() const { return read_file(path_).value(); }
  static bool until_step_two(const nlohmann::ordered_json& record) {
    return record.value("step", 0) <= 2;
  }

  std::string path_;
};

/// As JsonLines writes lines `first`, first + 1, ...
std::string written(std::initializer_list<std::string> records, uint64_t first = 1) {
  std::string text;
  for (const std::string& record : records) text += seal_json(record, first++) + '\n';
  return text;
}

TEST_F(MetricsFile, HasOneObjectPerLineWithItsChecksum) {
  {
    JsonLines lines = JsonLines::open(path_).take_or_throw();
    ASSERT_TRUE(lines.write({{"step", 1}, {"loss", 0.5}}).ok());
    EXPECT_EQ(text(), written({"{\"step\":1,\"loss\":0.5}"})) << "not flushed at once";
  }
  JsonLines again = JsonLines::open(path_).take_or_throw();
  ASSERT_TRUE(again.write({{"text", "two\nlines"}}).ok());
  EXPECT_EQ(again.lines(), 2);
  EXPECT_EQ(text(), written({"{\"step\":1,\"loss\":0.5}", "{\"text\":\"two\\nlines\"}"}));
}

TEST_F(MetricsFile, UnopenableFileIsNamed) {
  const auto lines = JsonLines::open("/no/such/folder/metrics.jsonl");
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error(), "cannot write /no/such/folder/metrics.jsonl: No such file or directory");
}

TEST_F(MetricsFile, TrimKeepsASoundFile) {
  const std::string sound = written({"{\"step\":1}", "{\"step\":2}"});
  put(sound);
  const TrimmedLines trimmed = trim_json_lines(path_, until_step_two).value();
  EXPECT_EQ(trimmed.kept, 2);
  EXPECT_EQ(trimmed.dropped, 0);
  EXPECT_EQ(text(), sound);
  put("{\"step\":1}\n{\"step\":2}\n");  // of an older version
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value().kept, 2);
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsFile, TrimDropsWhatCameAfterTheCheckpoint) {
  put(written({"{\"step\":1}", "{\"step\":2}", "{\"step\":3}", "{\"step\":4}"}));
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value().dropped, 2);
  EXPECT_EQ(text(), written({"{\"step\":1}", "{\"step\":2}"}));
}

// A crash may cut the last line anywhere, the newline included.
TEST_F(MetricsFile, TrimDropsATornLastLineAtEveryOffset) {
  const std::string good = written({"{\"step\":1}"});
  const std::string last = written({"{\"step\":2,\"loss\":1.25}"}, 2);
  for (size_t cut = 1; cut < last.size(); ++cut) {
    put(good + last.substr(0, cut));
    EXPECT_EQ(trim_json_lines(path_, until_step_two).value().dropped, 1) << cut;
    EXPECT_EQ(text(), good) << cut;
  }
}

TEST_F(MetricsFile, TrimKeepsSoundLinesBehindDamagedOnesAndACopyOfAll) {
  const std::string copy = path_ + ".damaged-1";
  const std::string damaged = written({"{\"step\":1}"}) + "[]\n" + written({"{\"step\":2}"}, 2);
  put(damaged);
  const TrimmedLines trimmed = trim_json_lines(path_, until_step_two).value();
  EXPECT_EQ(trimmed.kept, 2);
  ASSERT_EQ(trimmed.problems.size(), 1U);
  EXPECT_EQ(trimmed.problems[0], path_ + ":2: no JSON object");
  EXPECT_EQ(text(), written({"{\"step\":1}", "{\"step\":2}"}));
  EXPECT_EQ(trimmed.copy, copy);
  EXPECT_EQ(read_file(copy).value(), damaged);
  put(damaged);
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value().copy, path_ + ".damaged-2");
  EXPECT_EQ(read_file(copy).value(), damaged) << "overwritten";
  std::filesystem::remove(copy);
  std::filesystem::remove(path_ + ".damaged-2");
}

TEST_F(MetricsFile, TrimOfAMissingOrEmptyFileDropsNothing) {
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value().dropped, 0);
  put("");
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value().dropped, 0);
}

class DamagedMetrics : public MetricsFile {
 protected:
  /// Reads all; the steps of the sound lines.
  std::vector<int> steps() {
    JsonLineReader reader = JsonLineReader::open(path_).take_or_throw();
    std::vector<int> steps;
    while (reader.next().value()) steps.push_back(reader.record()["step"]);
    problems_ = reader.problems();
    torn_ = reader.is_torn();
    lines_ = reader.lines();
    unchecked_ = reader.unchecked();
    return steps;
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (int step = 1; step <= 6; ++step)
      lines.push_back(written({fmt::format("{{\"step\":{},\"loss\":0.5}}", step)},
                              static_cast<uint64_t>(step)));
    return lines;
  }
  void put_lines(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line;
    put(text);
  }

  std::vector<std::string> problems_;
  bool torn_ = false;
  int64_t lines_ = 0;
  int64_t unchecked_ = 0;
};

TEST_F(DamagedMetrics, AreToldByTheirLineAndTheOthersRead) {
  const auto sound = lines();
  put_lines(sound);
  EXPECT_EQ(steps(), (std::vector{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(problems_.empty());

  auto changed = sound;
  changed[2].replace(changed[2].find("0.5"), 3, "0.4");
  put_lines(changed);
  EXPECT_EQ(steps(), (std::vector{1, 2, 4, 5, 6}));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], ::testing::HasSubstr(":3: its checksum is not '"));

  auto shorter = sound;
  shorter.erase(shorter.begin() + 1, shorter.begin() + 3);
  put_lines(shorter);
  EXPECT_EQ(steps(), (std::vector{1, 4, 5, 6}));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0], path_ + ":2: 2 lines are missing before it");
  EXPECT_EQ(lines_, 6);

  auto twice = sound;
  twice.insert(twice.begin() + 3, twice[1]);
  put_lines(twice);
  EXPECT_EQ(steps(), (std::vector{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0], path_ + ":4: line 2 of what was written stands here again");

  auto foreign = sound;
  foreign.insert(foreign.begin() + 3, "{\"step\":9}\n");
  put_lines(foreign);
  EXPECT_EQ(steps(), (std::vector{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], ::testing::HasSubstr(":4: it has no checksum"));

  put_lines({sound[0], sound[1], sound[2].substr(0, 20)});
  EXPECT_EQ(steps(), (std::vector{1, 2}));
  EXPECT_TRUE(torn_);
}

TEST_F(DamagedMetrics, NoChangeOfAByteIsSilent) {
  const auto sound = lines();
  std::string whole;
  for (const std::string& line : sound) whole += line;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string text = whole;
    text[at] ^= 1;
    put(text);
    const std::vector<int> found = steps();
    EXPECT_TRUE(!problems_.empty() || torn_ || unchecked_ > 0) << at;
    EXPECT_LE(found.size(), 6U);
  }
}

TEST_F(DamagedMetrics, LinesOfOlderVersionsAreReadAndCounted) {
  put("{\"step\":1}\n{\"step\":2}\n" + written({"{\"step\":3}"}, 3));
  EXPECT_EQ(steps(), (std::vector{1, 2, 3}));
  EXPECT_TRUE(problems_.empty());
  EXPECT_EQ(unchecked_, 2);
}

}  // namespace
}  // namespace fullbore

#include "fullbore/monitor/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "fullbore/base/files.h"

namespace fullbore {
namespace {

class JsonLinesFile : public ::testing::Test {
 protected:
  JsonLinesFile() : path_(::testing::TempDir() + "fullbore_metrics.jsonl") {
    std::filesystem::remove(path_);
  }
  ~JsonLinesFile() override { std::filesystem::remove(path_); }

  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string text() const { return read_file(path_).value(); }
  static bool until_step_two(const nlohmann::json& record) { return record.value("step", 0) <= 2; }

  std::string path_;
};

TEST_F(JsonLinesFile, AppendsOneObjectPerLine) {
  {
    JsonLines lines = JsonLines::open(path_).take_or_throw();
    ASSERT_TRUE(lines.write({{"step", 1}, {"loss", 0.5}}).ok());
    EXPECT_EQ(text(), "{\"step\":1,\"loss\":0.5}\n") << "not flushed at once";
  }
  JsonLines again = JsonLines::open(path_).take_or_throw();
  ASSERT_TRUE(again.write({{"text", "two\nlines"}}).ok());
  EXPECT_EQ(text(), "{\"step\":1,\"loss\":0.5}\n{\"text\":\"two\\nlines\"}\n");
}

TEST_F(JsonLinesFile, UnopenableFileIsNamed) {
  const auto lines = JsonLines::open("/no/such/folder/metrics.jsonl");
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error(), "cannot open /no/such/folder/metrics.jsonl: No such file or directory");
}

TEST_F(JsonLinesFile, TrimKeepsASoundFile) {
  put("{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value(), 0);
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(JsonLinesFile, TrimDropsWhatCameAfterTheCheckpoint) {
  put("{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value(), 2);
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
}

// A crash may cut the last line anywhere, the newline included.
TEST_F(JsonLinesFile, TrimDropsATornLastLineAtEveryOffset) {
  const std::string good = "{\"step\":1}\n";
  const std::string last = "{\"step\":2,\"loss\":1.25}\n";
  for (size_t cut = 1; cut < last.size(); ++cut) {
    put(good + last.substr(0, cut));
    EXPECT_EQ(trim_json_lines(path_, until_step_two).value(), 1) << cut;
    EXPECT_EQ(text(), good) << cut;
  }
}

TEST_F(JsonLinesFile, TrimStopsAtTheFirstLineThatIsNoObject) {
  put("{\"step\":1}\n[]\n{\"step\":2}\n");
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value(), 2);
  EXPECT_EQ(text(), "{\"step\":1}\n");
}

TEST_F(JsonLinesFile, TrimOfAMissingOrEmptyFileDropsNothing) {
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value(), 0);
  put("");
  EXPECT_EQ(trim_json_lines(path_, until_step_two).value(), 0);
}

}  // namespace
}  // namespace fullbore

#include "fullbore/monitor/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/monitor/crc32c.h"
#include "fullbore/monitor/metric_sinks.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheValuesOfItsDefinition) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// tools/golden/event_file_golden.py: the same events written by TensorBoard's own writer.
TEST(EventFile, HasTheBytesOfTensorBoardsWriter) {
  const auto golden = nlohmann::json::parse(
      read_file(testing::source_folder() + "/tests/monitor/golden/event_file.json").value());
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& pair : golden["scalars"])
    scalars.emplace_back(pair[0], std::stod(pair[1].get<std::string>()));
  const testing::ScratchFolder folder;
  EventFile file = EventFile::create(folder / "deep/tensorboard", 1700000000.25).take_or_throw();
  EXPECT_THAT(file.path(), HasSubstr("deep/tensorboard/events.out.tfevents.1700000000."));
  ASSERT_TRUE(file.restart(301, 1700000000.5).ok());
  ASSERT_TRUE(file.write(310, 1700000001.0, scalars).ok());
  ASSERT_TRUE(file.write(123456789012, 1700000002.0, scalars).ok());
  EXPECT_TRUE(read_file(file.path()).value() == from_hex(golden["file"]));
}

TEST(EventFile, AFolderThatCannotBeMadeIsNamed) {
  EXPECT_THAT(EventFile::create("/proc/none/tensorboard", 0).error(),
              HasSubstr("cannot create the folder /proc/none/tensorboard"));
}

TEST(MetricSinks, TurnRecordsIntoCurves) {
  const testing::ScratchFolder folder;
  MetricSinks sinks;
  ASSERT_TRUE(sinks.write({{"kind", "train"}, {"step", 1}}).ok()) << "none is open";
  ASSERT_TRUE(sinks.open({.tensorboard = true}, folder / "tb", "run", 0).ok());
  ASSERT_TRUE(sinks.write({{"kind", "train"}, {"step", 7}, {"loss", 0.5}, {"best", true}}).ok());
  const std::string path = std::filesystem::directory_iterator(folder / "tb")->path().string();
  const std::string bytes = read_file(path).value();
  EXPECT_THAT(bytes, HasSubstr("train/loss"));
  EXPECT_EQ(bytes.find("best"), std::string::npos);
  EXPECT_EQ(bytes.find("step"), std::string::npos);
}

}  // namespace
}  // namespace fullbore

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/support/control_bytes_test.h"
#include "tests/support/output_rows.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

const OutputRows& rows() {
  static const OutputRows all = {
      {"energy generate",
       {{"energy", "generate", "--pairs", "2", "-o", "new.efb", "--force"}, true, {"new.efb"}}},
      {"energy convert",
       {{"energy", "convert", "pairs.efb", "-o", "new.jsonl", "--force"}, true, {"new.jsonl"}}},
      {"energy inspect", {{"energy", "inspect", "pairs.efb"}}},
      {"energy eval", {{"energy", "eval", "run", "--pairs", "2"}}},
      {"energy translate", {{"energy", "translate", "run", "a cat"}}},
      {"energy picture",
       {{"energy", "picture", "run", "-o", "new.svg", "--force"}, true, {"new.svg"}}}};
  return all;
}

class EnergyOutput : public OutputRowsTest {
 protected:
  EnergyOutput() : OutputRowsTest(rows()) {}
  void prepare() override {
    EXPECT_EQ(command({"energy", "generate", "--pairs", "2", "-o", "pairs.efb"}).exit_code, 0);
    folder_.put(
        "run.yaml",
        "{data: {pairs: 2, validation_pairs: 1}, lattice: {width: 2, height: 2, depth: 2,\n"
        " capacity: 8}, model: {name: energy_flow, embedding_width: 4, carrier_hidden: 2,\n"
        " carrier_layers: 1}, bridge: {encoder: transformer, width: 8, heads: 1, hidden: 4,\n"
        " memory: 4}, train: {steps: 1, batch_size: 1}}\n");
    EXPECT_EQ(command({"train", "run.yaml", "run.dir=run"}).exit_code, 0);
  }
};

TEST_F(EnergyOutput, EachCommandHasARow) { expect_rows_of_workloads(rows(), {"energy_flow"}); }
TEST_F(EnergyOutput, ToAFullDeviceIsNamed) { expect_full_device_named(); }
TEST_F(EnergyOutput, ToAClosedPipeEndsWithoutAWord) { expect_closed_pipe_ends_without_a_word(); }
TEST_F(EnergyOutput, ToAClosedDescriptorIsNamed) { expect_closed_descriptor_named(); }
TEST_F(EnergyOutput, FilesOnAFullDiskAreNamed) { expect_full_disk_named(); }

class EnergyCommand : public ControlBytesTest {};

TEST_F(EnergyCommand, MakesConvertsAndInspectsAFile) {
  CommandResult result = command({"energy", "generate", "-o", "a.efb", "--pairs", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("a.efb: 4 pairs of key 42, 768 numbers a vector (efb2, pairs, "
                                    "texts, of unit length), 24.2 KiB"));
  result = command({"energy", "convert", "a.efb", "-o", "a.jsonl"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  result = command({"energy", "convert", "a.jsonl", "-o", "b.efb", "--pairs", "--normalize"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  result = command({"energy", "inspect", "b.efb", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["records"], 8);
  EXPECT_EQ(json["width"], 768);
  EXPECT_EQ(json["pairs"], true);
  EXPECT_EQ(json["first_texts"][0], "a quiet woman sits under the river");
  result = command({"energy", "inspect", "b.efb"});
  EXPECT_THAT(result.out, HasSubstr("records   8, 4 pairs"));
  EXPECT_THAT(result.out, HasSubstr("a quiet woman sits under the river"));
}

TEST_F(EnergyCommand, LosesNothing) {
  folder_.put("a.efb", "mine");
  EXPECT_EQ(command({"energy", "generate", "-o", "a.efb", "--pairs", "1"}).exit_code, 2);
  EXPECT_EQ(command({"energy", "convert", "a.efb", "-o", "b.efb"}).exit_code, 3);
  EXPECT_EQ(read_file(folder_ / "a.efb").take_or_throw(), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.efb"));
  EXPECT_EQ(command({"energy", "generate", "-o", "a.efb", "--pairs", "1", "--force"}).exit_code, 0);
  // The file that is read may be the one that is written: it is replaced at once.
  EXPECT_EQ(command({"energy", "convert", "a.efb", "-o", "a.efb", "--force"}).exit_code, 0);
  EXPECT_EQ(command({"energy", "inspect", "a.efb"}).exit_code, 0);
}

TEST_F(EnergyCommand, NamesWhatItCannotDo) {
  CommandResult result = command({"energy", "generate", "-o", "a.efb1", "--pairs", "1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("EFB1 has no place for texts"));
  result = command({"energy", "inspect", "missing.efb"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("missing.efb"));
  result = command({"energy", "convrt", "a", "-o", "b"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("convert"));
}

TEST_F(EnergyCommand, ShowsWhatWouldSteerATerminal) {
  folder_.put("a.jsonl", "{\"text\": \"" + kPlantedJson + "\", \"target\": [1]}\n");
  expect_escaped({"energy", "inspect", "a.jsonl"});
  expect_escaped({"energy", "inspect", "a.jsonl", "--json"});
  folder_.put("b.jsonl", "{\"" + kPlantedJson + "\": 1, \"target\": [\"" + kPlantedJson + "\"]}\n");
  expect_escaped({"energy", "inspect", "b.jsonl"}, false);
  expect_escaped({"energy", "inspect", "gift" + kPlanted + ".efb"});
}

}  // namespace
}  // namespace fullbore

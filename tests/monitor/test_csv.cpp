#include "fullbore/monitor/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(Csv, IsATableOfAllKeys) {
  const testing::ScratchFolder folder;
  const std::string path = folder.put("metrics.jsonl",
                                      "{\"kind\":\"train\",\"step\":1,\"loss\":0.1}\n"
                                      "{\"kind\":\"a \\\"b\\\", c\",\"step\":2,\"x y\":null}\n"
                                      "{\"kind\":\"torn");
  EXPECT_EQ(to_csv(read_json_lines(path).take_or_throw().records),
            "kind,step,loss,x y\n"
            "train,1,0.1,\n"
            "\"a \"\"b\"\", c\",2,,\n");
  EXPECT_EQ(to_csv({}), "\n");
}

TEST(Csv, AMalformedLineIsNamed) {
  const testing::ScratchFolder folder;
  const std::string path = folder.put("m.jsonl", "{}\n[1]\n{}\n");
  const JsonLinesFile file = read_json_lines(path).take_or_throw();
  EXPECT_EQ(file.problems, std::vector<std::string>{path + ":2: no JSON object"});
  EXPECT_EQ(file.records.size(), 2U) << "the others are read";
  EXPECT_THAT(read_json_lines(folder / "none").error(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace fullbore

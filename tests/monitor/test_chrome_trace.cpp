#include "fullbore/monitor/chrome_trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fullbore {
namespace {

using Json = nlohmann::json;

TEST(ChromeTrace, IsTheFormatThatPerfettoReads) {
  ChromeTrace trace(1 << 20);
  trace.name_thread(0, "worker 0");
  EXPECT_TRUE(
      trace.add("matmul \"quoted\" \xff", 0, 1'000'000, 1'002'500, {{"line", "model.cpp:3"}}));
  EXPECT_TRUE(trace.add("tanh", 1, 1'003'000, 1'003'001));
  const Json json = Json::parse(trace.finish({{"job", "mine"}}));
  ASSERT_EQ(json["traceEvents"].size(), 3U);
  EXPECT_EQ(json["traceEvents"][0]["ph"], "M");
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "worker 0");
  const Json& event = json["traceEvents"][1];
  EXPECT_EQ(event["ph"], "X");
  EXPECT_EQ(event["ts"], 0);
  EXPECT_EQ(event["dur"], 2.5) << "microseconds";
  EXPECT_EQ(event["tid"], 0);
  EXPECT_EQ(event["args"]["line"], "model.cpp:3");
  EXPECT_EQ(json["traceEvents"][2]["ts"], 3);
  EXPECT_EQ(json["otherData"]["job"], "mine");
  EXPECT_EQ(json["otherData"]["events"], 2);
  EXPECT_EQ(json["otherData"]["dropped_events"], 0);
}

TEST(ChromeTrace, WithoutEventsItIsValidToo) {
  EXPECT_TRUE(Json::parse(ChromeTrace(4096).finish({}))["traceEvents"].empty());
}

TEST(ChromeTrace, IsNeverLargerThanAllowedAndSaysWhatIsMissing) {
  for (const size_t most : {ChromeTrace::kLeastBytes, size_t{50'000}}) {
    ChromeTrace trace(most);
    int64_t added = 0;
    for (int i = 0; i < 10'000; ++i)
      added += trace.add("a kernel with a name", i % 2, i * 1000, i * 1000 + 900) ? 1 : 0;
    const std::string text = trace.finish({{"job", std::string(500, 'x')}});
    EXPECT_LE(text.size(), most);
    EXPECT_GT(text.size(), most / 3);
    const Json json = Json::parse(text);
    EXPECT_EQ(json["traceEvents"].size(), static_cast<size_t>(added));
    EXPECT_EQ(json["otherData"]["dropped_events"], 10'000 - added);
    EXPECT_EQ(trace.dropped(), 10'000 - added);
  }
}

}  // namespace
}  // namespace fullbore

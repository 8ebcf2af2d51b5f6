// Perfetto's format, read back by a small reader of its messages: tools/interops/perfetto.py compares with Perfetto's own.
#include "fullbore/monitor/perfetto_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One field: a number, or bytes.
struct Field {
  uint64_t number = 0;
  std::string_view bytes;
};
using Fields = std::multimap<uint64_t, Field>;

uint64_t read_varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

Fields fields_of(std::string_view message) {
  Fields fields;
  while (!message.empty()) {
    const uint64_t key = read_varint(message);
    Field field;
    if (key % 8 == 0) {
      field.number = read_varint(message);
    } else {
      const uint64_t size = key % 8 == 2 ? read_varint(message) : 8;
      field.bytes = message.substr(0, size);
      message.remove_prefix(size);
    }
    fields.emplace(key / 8, field);
  }
  return fields;
}

const Field& only(const Fields& fields, uint64_t number) {
  EXPECT_EQ(fields.count(number), 1U) << number;
  static const Field none;
  const auto found = fields.find(number);
  return found == fields.end() ? none : found->second;
}

/// What the file says, event by event: "100 worker 0 + matmul", "200 worker 0 -", "100 live = 64".
struct Read {
  std::vector<std::string> events;
  std::map<uint64_t, std::string> tracks;
  std::map<uint64_t, std::string> names, keys, values;
  std::string process;
  std::vector<std::string> annotations;

  static void intern(const Fields& data, uint64_t field, std::map<uint64_t, std::string>& texts) {
    for (auto [at, end] = data.equal_range(field); at != end; ++at) {
      const Fields entry = fields_of(at->second.bytes);
      texts[only(entry, 1).number] = only(entry, 2).bytes;
    }
  }

  explicit Read(std::string_view file) {
    for (const auto& [number, field] : fields_of(file)) {
      EXPECT_EQ(number, 1U) << "a Trace holds packets alone";
      const Fields packet = fields_of(field.bytes);
      EXPECT_EQ(only(packet, 10).number, 1U) << "the sequence";
      if (packet.contains(12)) {
        const Fields data = fields_of(only(packet, 12).bytes);
        intern(data, 2, names);
        intern(data, 3, keys);
        intern(data, 29, values);
      }
      if (packet.contains(60)) add_track(fields_of(only(packet, 60).bytes));
      if (packet.contains(11)) add_event(only(packet, 8).number, fields_of(only(packet, 11).bytes));
    }
  }

  void add_track(const Fields& descriptor) {
    std::string& name = tracks[only(descriptor, 1).number];
    if (descriptor.contains(3)) process = only(descriptor, 3).bytes;
    if (descriptor.contains(4)) name = only(fields_of(only(descriptor, 4).bytes), 5).bytes;
    if (descriptor.contains(8)) name = only(descriptor, 2).bytes;
  }

  void add_event(uint64_t ns, const Fields& event) {
    std::string text = std::to_string(ns) + ' ' + tracks.at(only(event, 11).number);
    const uint64_t type = only(event, 9).number;
    if (type == 1) text += " + " + names.at(only(event, 10).number);
    if (type == 2) text += " -";
    if (type == 4) text += " = " + std::to_string(only(event, 30).number);
    events.push_back(text);
    for (auto [at, end] = event.equal_range(4); at != end; ++at) {
      const Fields one = fields_of(at->second.bytes);
      annotations.push_back(keys.at(only(one, 1).number) + '=' +
                            (one.contains(17)
                                 ? values.at(only(one, 17).number)
                                 : std::to_string(static_cast<int64_t>(only(one, 4).number))));
    }
  }
};

TEST(PerfettoTrace, TellsEventsAndCountersInTheOrderOfTime) {
  PerfettoTrace trace(1 << 16);
  trace.name_thread(0, "worker 0");
  trace.name_thread(1, "steps");
  EXPECT_TRUE(trace.add("step", 1, 1000, 1100));
  EXPECT_TRUE(trace.add("wait", 1, 1000, 1010, {{"loss", -3}}));
  EXPECT_TRUE(trace.add("run", 1, 1010, 1100));  // ends with the step around it
  EXPECT_TRUE(trace.add("tanh", 0, 1050, 1060, {{"line", "model.cpp:3"}}));
  EXPECT_TRUE(trace.add("matmul", 0, 1020, 1050, {{"line", "model.cpp:3"}}));
  EXPECT_TRUE(trace.add_bytes("live", 1020, 4096));
  const Read read(trace.finish({{"job", "mine"}}));
  EXPECT_THAT(read.events,
              ElementsAre("20 worker 0 + matmul", "50 worker 0 -", "50 worker 0 + tanh",
                          "60 worker 0 -", "0 steps + step", "0 steps + wait", "10 steps -",
                          "10 steps + run", "100 steps -", "100 steps -", "20 live = 4096"));
  EXPECT_THAT(read.annotations, ElementsAre("line=model.cpp:3", "line=model.cpp:3", "loss=-3"));
  EXPECT_EQ(read.values.size(), 1U) << "a text stands in the file once";
  EXPECT_THAT(read.process, HasSubstr("job: mine"));
  EXPECT_THAT(read.process, HasSubstr("events: 6"));
}

TEST(PerfettoTrace, AnEventThatOutlastsTheOneAroundItIsCutOff) {
  PerfettoTrace trace(1 << 16);
  trace.name_thread(0, "w");
  trace.add("outer", 0, 0, 100);
  trace.add("inner", 0, 50, 120);
  EXPECT_THAT(Read(trace.finish({})).events,
              ElementsAre("0 w + outer", "50 w + inner", "100 w -", "100 w -"));
}

TEST(PerfettoTrace, NamesNeedNotBeUtf8) {
  PerfettoTrace trace(1 << 16);
  trace.add("a\xff", 0, 0, 1);
  EXPECT_EQ(Read(trace.finish({})).names.at(1), "a\xef\xbf\xbd");
}

TEST(PerfettoTrace, IsNeverLargerThanAllowedAndSaysWhatIsMissing) {
  for (const size_t most : {TraceFile::kLeastBytes, size_t{50'000}}) {
    PerfettoTrace trace(most);
    int64_t added = 0;
    for (int64_t i = 0; i < 10'000; ++i) {
      added += trace.add("kernel \xff\xfe number " + std::to_string(i), static_cast<int>(i % 70),
                         i * 1'000'000'000, i * 1'000'000'000 + 900, {{"launch", -i}})
                   ? 1
                   : 0;
      added += trace.add_bytes("counter " + std::to_string(i % 5), i * 1'000'000'000, -1) ? 1 : 0;
    }
    const std::string file = trace.finish({{"job", std::string(500, 'x')}});
    EXPECT_LE(file.size(), most);
    EXPECT_GT(added, 5);
    EXPECT_EQ(trace.dropped(), 20'000 - added);
    EXPECT_THAT(Read(file).process,
                HasSubstr("dropped_events: " + std::to_string(trace.dropped())));
  }
}

TEST(TraceFile, TheNameDecidesTheFormat) {
  for (const char* path : {"a.pftrace", "b/a.perfetto-trace"})
    EXPECT_EQ(make_trace_file(path, 4096)->finish({}).front(), '\n') << "field 1, bytes";
  EXPECT_EQ(make_trace_file("a.trace.json", 4096)->finish({}).front(), '{');
}

}  // namespace
}  // namespace fullbore

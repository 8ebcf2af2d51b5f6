#include "fullbore/monitor/chrome_trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

// What finish() may add: the brackets and what is told about the whole.
constexpr size_t kReservedBytes = 2048;

// Names come from paths and settings, which need not be UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ChromeTrace::ChromeTrace(size_t most_bytes) : most_bytes_(most_bytes) {
  FB_CHECK(most_bytes >= kLeastBytes, "{} bytes", most_bytes);
}

bool ChromeTrace::append(const Json& event) {
  const std::string line = dump(event);
  if (text_.size() + line.size() + 2 + kReservedBytes > most_bytes_) return false;
  if (!text_.empty()) text_ += ",\n";
  text_ += line;
  return true;
}

void ChromeTrace::name_thread(int thread, const std::string& name) {
  append({{"name", "thread_name"},
          {"ph", "M"},
          {"pid", 1},
          {"tid", thread},
          {"args", {{"name", name}}}});
}

double ChromeTrace::microseconds(int64_t ns) {
  if (first_ns_ < 0) first_ns_ = ns;
  return static_cast<double>(ns - first_ns_) / 1e3;
}

bool ChromeTrace::add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns,
                      const Json& arguments) {
  Json event = {{"name", name},
                {"ph", "X"},
                {"pid", 1},
                {"tid", thread},
                {"ts", microseconds(begin_ns)},
                {"dur", static_cast<double>(end_ns - begin_ns) / 1e3}};
  if (!arguments.empty()) event["args"] = arguments;
  return count(append(event));
}

bool ChromeTrace::add_bytes(std::string_view counter, int64_t ns, int64_t bytes) {
  return count(append({{"name", counter},
                       {"ph", "C"},
                       {"pid", 1},
                       {"tid", 0},
                       {"ts", microseconds(ns)},
                       {"args", {{"bytes", bytes}}}}));
}

std::string ChromeTrace::finish(Json about) const {
  about["events"] = events();
  about["dropped_events"] = dropped();
  const std::string tail =
      fmt::format("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{}}}\n", dump(about));
  FB_CHECK(tail.size() <= kReservedBytes - 20, "{} bytes about a trace", tail.size());
  return "{\"traceEvents\":[\n" + text_ + tail;
}

}  // namespace fullbore

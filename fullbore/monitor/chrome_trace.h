#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fullbore {

/// A timeline in the trace event format, which https://ui.perfetto.dev and chrome://tracing open.
/// Bounded: viewers fail on files of hundreds of megabytes, so what comes after `most_bytes` are full
/// is counted and left out. Source of the format: "Trace Event Format", Google, 2016.
class ChromeTrace {
 public:
  static constexpr size_t kLeastBytes = 4096;
  /// `most_bytes`: of the finished text, at least kLeastBytes.
  explicit ChromeTrace(size_t most_bytes);

  /// The row of the timeline that events of `thread` are drawn in.
  void name_thread(int thread, const std::string& name);
  /// Something that lasted from begin to end, by any one clock. Events of a thread may lie within one
  /// another. False if there was no room.
  bool add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns);
  bool add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns,
           const nlohmann::ordered_json& arguments);

  int64_t events() const { return events_; }
  int64_t dropped() const { return dropped_; }
  /// The whole file. `about` stands in it under "otherData", with the number of dropped events, and
  /// must be short.
  std::string finish(nlohmann::ordered_json about) const;

 private:
  bool append(const nlohmann::ordered_json& event);

  size_t most_bytes_;
  std::string text_;
  int64_t first_ns_ = -1;  ///< the timeline begins with the first event
  int64_t events_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace fullbore

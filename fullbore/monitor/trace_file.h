#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fullbore {

/// A timeline in a format that viewers open. Bounded: viewers fail on files of hundreds of megabytes, so what comes after
/// the file is full is counted and left out.
class TraceFile {
 public:
  static constexpr size_t kLeastBytes = 4096;

  virtual ~TraceFile() = default;
  /// The row of the timeline that events of `thread` are drawn in.
  virtual void name_thread(int thread, const std::string& name) = 0;
  /// Something that lasted from begin to end, by any one clock. Events of a thread may lie within one another.
  /// `arguments`: a flat object. False if there was no room.
  virtual bool add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns,
                   const nlohmann::ordered_json& arguments) = 0;
  bool add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns);
  /// Bytes of something from then on, by the same clock. False if there was no room.
  virtual bool add_bytes(std::string_view counter, int64_t ns, int64_t bytes) = 0;

  int64_t events() const { return events_; }
  int64_t dropped() const { return dropped_; }
  /// The whole file. `about` stands in it, with the number of dropped events, and must be short.
  virtual std::string finish(nlohmann::ordered_json about) const = 0;

 protected:
  /// Of something that was added, or of which there was no room.
  bool count(bool added) {
    ++(added ? events_ : dropped_);
    return added;
  }

 private:
  int64_t events_ = 0;
  int64_t dropped_ = 0;
};

/// By the end of the file's name: PerfettoTrace for ".pftrace" and ".perfetto-trace", else ChromeTrace. `most_bytes`: of the
/// finished file, at least kLeastBytes.
std::unique_ptr<TraceFile> make_trace_file(std::string_view path, size_t most_bytes);

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "fullbore/monitor/trace_file.h"

namespace fullbore {

/// A timeline in the trace event format, JSON, which https://ui.perfetto.dev and chrome://tracing open. Source of the
/// format: "Trace Event Format", Google, 2016.
class ChromeTrace : public TraceFile {
 public:
  /// `most_bytes`: of the finished text, at least kLeastBytes.
  explicit ChromeTrace(size_t most_bytes);

  void name_thread(int thread, const std::string& name) override;
  using TraceFile::add;
  bool add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns,
           const nlohmann::ordered_json& arguments) override;
  bool add_bytes(std::string_view counter, int64_t ns, int64_t bytes) override;
  /// `about` stands under "otherData".
  std::string finish(nlohmann::ordered_json about) const override;

 private:
  bool append(const nlohmann::ordered_json& event);
  double microseconds(int64_t ns);

  size_t most_bytes_;
  std::string text_;
  int64_t first_ns_ = -1;  ///< the timeline begins with the first event
};

}  // namespace fullbore

#include "fullbore/monitor/trace_file.h"

#include <nlohmann/json.hpp>

#include "fullbore/monitor/chrome_trace.h"
#include "fullbore/monitor/perfetto_trace.h"

namespace fullbore {

bool TraceFile::add(std::string_view name, int thread, int64_t begin_ns, int64_t end_ns) {
  return add(name, thread, begin_ns, end_ns, nlohmann::ordered_json::object());
}

std::unique_ptr<TraceFile> make_trace_file(std::string_view path, size_t most_bytes) {
  if (path.ends_with(".pftrace") || path.ends_with(".perfetto-trace"))
    return std::make_unique<PerfettoTrace>(most_bytes);
  return std::make_unique<ChromeTrace>(most_bytes);
}

}  // namespace fullbore

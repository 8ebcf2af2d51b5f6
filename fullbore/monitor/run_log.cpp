#include "fullbore/monitor/run_log.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <mutex>
#include <vector>

namespace fullbore {
namespace {

class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) { set_level(spdlog::level::info); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (message.level >= spdlog::level::warn) {
      console_.line(fmt::format("fullbore: warning: {}", text));
    } else {
      console_.line(text);
    }
  }
  void flush_() override {}

 private:
  Console& console_;
};

}  // namespace

Result<std::shared_ptr<spdlog::logger>> make_run_log(Console& console, const std::string& path) {
  std::vector<spdlog::sink_ptr> sinks = {std::make_shared<ConsoleSink>(console)};
  if (!path.empty()) {
    try {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
      file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
      sinks.push_back(std::move(file));
    } catch (const spdlog::spdlog_ex& error) {
      return Failure{fmt::format("cannot write {}: {}", path, error.what())};
    }
  }
  auto log = std::make_shared<spdlog::logger>("run", sinks.begin(), sinks.end());
  log->set_level(spdlog::level::debug);
  log->flush_on(spdlog::level::debug);  // few lines, and the last before a crash counts most
  return log;
}

}  // namespace fullbore

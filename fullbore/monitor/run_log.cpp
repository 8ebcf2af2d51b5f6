#include "fullbore/monitor/run_log.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/printable.h"

namespace fullbore {
namespace {

std::string_view payload(const spdlog::details::log_msg& message) {
  return {message.payload.data(), message.payload.size()};
}

/// Lines at the end of a file, which is no link. What cannot be written is lost: the run goes on.
class FileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(int file) : file_(file) {}
  ~FileSink() override { system_files().close(file_); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = printable(payload(message));
    spdlog::details::log_msg clean = message;
    clean.payload = text;
    spdlog::memory_buf_t line;
    formatter_->format(clean, line);
    std::string_view rest(line.data(), line.size());
    while (!rest.empty()) {
      const ssize_t written = system_files().write(file_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }
  void flush_() override {}

 private:
  int file_;
};

class ConsoleSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) { set_level(spdlog::level::info); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text = payload(message);
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
    const int file = system_files().append(path);
    if (file < 0) return cannot_write(path);
    auto sink = std::make_shared<FileSink>(file);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    sinks.push_back(std::move(sink));
  }
  auto log = std::make_shared<spdlog::logger>("run", sinks.begin(), sinks.end());
  log->set_level(spdlog::level::debug);
  log->flush_on(spdlog::level::debug);  // few lines, and the last before a crash counts most
  return log;
}

}  // namespace fullbore

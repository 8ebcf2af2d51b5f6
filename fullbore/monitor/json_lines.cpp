#include "fullbore/monitor/json_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {

Result<JsonLines> JsonLines::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  return JsonLines(fd, path);
}

JsonLines::JsonLines(JsonLines&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

JsonLines& JsonLines::operator=(JsonLines&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

JsonLines::~JsonLines() {
  if (fd_ >= 0) ::close(fd_);
}

Status JsonLines::write(const nlohmann::ordered_json& record) {
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure{fmt::format("cannot write {}: {}", path_, system_reason())};
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return success();
}

Result<int64_t> trim_json_lines(const std::string& path,
                                const std::function<bool(const nlohmann::json&)>& keep) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return int64_t{0};
  Result<std::string> contents = read_file(path);
  if (!contents) return Failure{contents.error()};
  const std::string& text = contents.value();
  size_t good = 0;
  while (good < text.size()) {
    const size_t end = text.find('\n', good);
    if (end == std::string::npos) break;
    const auto record =
        nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(good),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!record.is_object() || !keep(record)) break;
    good = end + 1;
  }
  if (good == text.size()) return int64_t{0};
  if (::truncate(path.c_str(), static_cast<off_t>(good)) != 0)
    return Failure{fmt::format("cannot shorten {}: {}", path, system_reason())};
  const auto rest = text.begin() + static_cast<std::ptrdiff_t>(good);
  return std::count(rest, text.end(), '\n') + (text.back() == '\n' ? 0 : 1);
}

}  // namespace fullbore

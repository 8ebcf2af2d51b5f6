#include "fullbore/monitor/json_lines.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {

Result<JsonLines> JsonLines::open(const std::string& path, FileSystem& files) {
  const int file = files.append(path);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  return JsonLines(file, path, files);
}

JsonLines::JsonLines(JsonLines&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)), files_(other.files_) {}

JsonLines& JsonLines::operator=(JsonLines&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(files_, other.files_);
  return *this;
}

JsonLines::~JsonLines() {
  if (file_ >= 0) files_->close(file_);
}

Failure JsonLines::failure() const {
  return {fmt::format("cannot write {}: {}", path_, system_reason())};
}

Status JsonLines::write(const nlohmann::ordered_json& record) {
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = files_->write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;  // or this would never end
    if (written <= 0) return failure();
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return success();
}

Status JsonLines::sync() {
  if (files_->sync(file_) != 0) return failure();
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  if (files_->sync_folder(folder.empty() ? "." : folder) != 0) return failure();
  return success();
}

Result<int64_t> trim_json_lines(const std::string& path,
                                const std::function<bool(const nlohmann::json&)>& keep,
                                FileSystem& files) {
  FileStatus status;
  if (files.status(path, status) != 0 && errno == ENOENT) return int64_t{0};
  Result<std::string> contents = read_file(path, files);
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
  if (files.truncate(path, good) != 0)
    return Failure{fmt::format("cannot shorten {}: {}", path, system_reason())};
  const auto rest = text.begin() + static_cast<std::ptrdiff_t>(good);
  return std::count(rest, text.end(), '\n') + (text.back() == '\n' ? 0 : 1);
}

}  // namespace fullbore

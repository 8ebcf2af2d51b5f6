#include "fullbore/monitor/json_lines.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/file_lines.h"
#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/monitor/json_line_reader.h"

namespace fullbore {

Result<JsonLines> JsonLines::open(const std::string& path, FileSystem& files) {
  const int file = files.append(path);
  if (file < 0) return cannot_write(path, files);
  JsonLines lines(file, 0, path, files);
  Result<FileLines> old = FileLines::open(path, files);
  for (;;) {
    const Result<bool> more = old.ok() ? old.value().next() : Failure{old.error()};
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) return lines;
    ++lines.lines_;
  }
}

JsonLines::JsonLines(JsonLines&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      lines_(other.lines_),
      path_(std::move(other.path_)),
      files_(other.files_) {}

JsonLines& JsonLines::operator=(JsonLines&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(lines_, other.lines_);
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
  const std::string text = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string line = seal_json(text, static_cast<uint64_t>(++lines_)) + '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = files_->write(file_, rest.data(), rest.size());
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

namespace {

/// How many lines there are up to `bytes`, and what is wrong with the file.
struct Survey {
  TrimmedLines lines;
  uint64_t bytes = 0;    ///< of the file up to the last line that is kept
  bool rewrite = false;  ///< something is wrong amid the lines that are kept
};

Result<Survey> survey(const std::string& path,
                      const std::function<bool(const nlohmann::ordered_json&)>& keep,
                      FileSystem& files) {
  Result<JsonLineReader> opened = JsonLineReader::open(path, files);
  if (!opened.ok()) return Failure{opened.error()};
  JsonLineReader& reader = opened.value();
  Survey survey;
  int64_t last_kept = 0;  // as a line of the file
  for (;;) {
    const Result<bool> more = reader.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value() || !keep(reader.record())) break;
    ++survey.lines.kept;
    last_kept = reader.line();
    survey.lines.unchecked = reader.unchecked();
    survey.rewrite = reader.problem_count() > 0;
  }
  survey.lines.problems = reader.problems();
  // The rest is counted, whatever it is.
  Result<FileLines> lines = FileLines::open(path, files);
  if (!lines.ok()) return Failure{lines.error()};
  for (;;) {
    const Result<bool> more = lines.value().next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) return survey;
    if (lines.value().number() > last_kept)
      ++survey.lines.dropped;
    else
      survey.bytes += lines.value().line().size() + 1;
  }
}

Status rewrite(const std::string& path, TrimmedLines& lines, FileSystem& files) {
  Result<JsonLineReader> opened = JsonLineReader::open(path, files);
  if (!opened.ok()) return Failure{opened.error()};
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  for (int64_t number = 1; number <= lines.kept; ++number) {
    const Result<bool> more = opened.value().next();
    if (!more.ok()) return Failure{more.error()};
    const std::string line = seal_json(opened.value().text(), static_cast<uint64_t>(number)) + '\n';
    if (Status written = file.value().write(line); !written.ok()) return written;
  }
  FileStatus status;
  int copy = 1;
  do lines.copy = fmt::format("{}.damaged-{}", path, copy++);
  while (files.status(lines.copy, status) == 0);
  if (files.rename(path, lines.copy) != 0)
    return Failure{fmt::format("cannot rename {} to {}: {}", path, lines.copy, system_reason())};
  return file.value().commit();
}

}  // namespace

Result<TrimmedLines> trim_json_lines(const std::string& path,
                                     const std::function<bool(const nlohmann::ordered_json&)>& keep,
                                     FileSystem& files) {
  FileStatus status;
  if (!files.link_target(path).empty()) return cannot_write(path, files);
  if (files.status(path, status) != 0 && errno == ENOENT) return TrimmedLines{};
  Result<Survey> found = survey(path, keep, files);
  if (!found.ok()) return Failure{found.error()};
  TrimmedLines lines = std::move(found.value().lines);
  if (found.value().rewrite) {
    if (Status written = rewrite(path, lines, files); !written.ok())
      return Failure{written.error()};
  } else if (lines.dropped > 0 && files.truncate(path, found.value().bytes) != 0) {
    return Failure{fmt::format("cannot shorten {}: {}", path, system_reason())};
  }
  return lines;
}

}  // namespace fullbore

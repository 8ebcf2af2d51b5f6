#include "fullbore/lab/runs/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/monitor/summary_file.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

/// Behind the dot of a folder that is being removed.
constexpr const char* kRemoved = ".removed";

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

int64_t bytes_within(const std::string& path) {
  int64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;  // what a run removes meanwhile
    if (entry->is_regular_file(ignored) && !entry->is_symlink(ignored))
      if (const auto size = entry->file_size(ignored); !ignored)
        bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

void read_config(RunFolder& run) {
  try {
    StoredConfig stored =
        load_stored_config(run.path + '/' + RunDirectory::kConfig, {}, ForeignModels::read);
    run.config = std::move(stored.config);
    run.foreign = std::move(stored.foreign);
    std::ranges::move(stored.notices, std::back_inserter(run.problems));
  } catch (const Error& error) {
    run.problems.emplace_back(error.what());
  }
}

void read_summary_of(RunFolder& run) {
  Result<SummaryFile> summary = read_summary(run.path + "/summary.json");
  if (summary.ok())
    run.summary = std::move(summary.value().json);
  else
    run.problems.push_back(summary.error());
}

std::string status_of(const RunFolder& run) {
  if (is_locked(run.path)) return "running";
  const auto status = run.summary.find("status");
  if (status == run.summary.end() || !status->is_string()) return "unknown";
  return *status == "running" ? "killed" : status->get<std::string>();
}

fs::file_time_type last_word(const std::string& path) {
  fs::file_time_type latest = fs::file_time_type::min();
  for (const char* name : {RunDirectory::kConfig, "metrics.jsonl", "log.txt", "summary.json"}) {
    std::error_code error;
    const auto written = fs::last_write_time(path + '/' + name, error);
    if (!error) latest = std::max(latest, written);
  }
  return latest;
}

}  // namespace

double RunFolder::figure(const char* key) const {
  const auto found = summary.find(key);
  return found != summary.end() && found->is_number() ? found->get<double>()
                                                      : std::numeric_limits<double>::quiet_NaN();
}

int64_t RunFolder::steps() const {
  const double steps = figure("steps");
  return steps >= 0 && steps < 1e15 ? static_cast<int64_t>(steps) : 0;
}

bool is_run_folder(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path + '/' + RunDirectory::kConfig, error);
}

RunFolder look_at_run(const std::string& path) {
  std::error_code error;
  RunFolder run;
  run.path = without_slashes(path);
  if (!fs::is_directory(run.path, error))
    throw DataError(fmt::format("there is no run {}", run.path));
  if (!is_run_folder(run.path))
    throw DataError(fmt::format("{} holds no run: it has no {}", run.path, RunDirectory::kConfig));
  run.name = fs::path(run.path).filename().string();
  read_config(run);
  read_summary_of(run);
  run.status = status_of(run);
  run.bytes = bytes_within(run.path);
  run.changed = last_word(run.path);
  return run;
}

std::vector<std::string> runs_in(const std::string& parent) {
  std::error_code error;
  std::vector<std::string> paths;
  fs::directory_iterator entry(parent, error);
  if (error) throw DataError(fmt::format("cannot read the folder {}: {}", parent, error.message()));
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!entry->path().filename().string().starts_with('.') && is_run_folder(path))
      paths.push_back(path);
  }
  std::ranges::sort(paths);
  return paths;
}

bool is_locked(const std::string& path, const std::string& locks) {
  struct stat folder {};
  if (stat(path.c_str(), &folder) != 0) return false;
  const Result<std::string> text = read_file(locks);
  if (!text.ok()) return false;
  // "1: FLOCK  ADVISORY  WRITE 4711 fe:01:12345 0 EOF". Source: proc(5).
  const std::string place =
      fmt::format(" {:02x}:{:02x}:{} ", major(folder.st_dev), minor(folder.st_dev), folder.st_ino);
  size_t begin = 0;
  while (begin < text.value().size()) {
    const size_t end = std::min(text.value().find('\n', begin), text.value().size());
    const std::string_view line(text.value().data() + begin, end - begin);
    if (line.find(" FLOCK ") != line.npos && line.find(place) != line.npos) return true;
    begin = end + 1;
  }
  return false;
}

Status remove_run(const std::string& path) {
  const std::string run = without_slashes(path);
  std::error_code error;
  if (fs::is_symlink(run, error))
    throw DataError(fmt::format("{} is a symbolic link: name the folder that it leads to", run));
  if (!is_run_folder(run))
    throw DataError(fmt::format("{} holds no run: it has no {}", run, RunDirectory::kConfig));
  const int lock = open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return Failure{fmt::format("cannot open {}: {}", run, system_reason())};
  const std::unique_ptr<const int, decltype([](const int* file) { close(*file); })> closing(&lock);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    throw DataError(fmt::format("{} is in use by another fullbore process", run));
  const fs::path whole = fs::absolute(run, error).lexically_normal();
  const std::string hidden =
      (whole.parent_path() / ('.' + whole.filename().string() + kRemoved)).string();
  // What an earlier removal that was killed left behind.
  if (fs::exists(fs::symlink_status(hidden, error)))
    if (Status removed = remove_folder_with_contents(hidden); !removed.ok()) return removed;
  if (system_files().rename(whole.string(), hidden) != 0)
    return Failure{fmt::format("cannot rename {} to {}: {}", run, hidden, system_reason())};
  return remove_folder_with_contents(hidden);
}

}  // namespace fullbore

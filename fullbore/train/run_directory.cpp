#include "fullbore/train/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/train/foreign_model.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

// A checkpoint outlives a power cut only if the folders around it do.
void create_folder(const std::string& path) { make_folders(path).take_or_throw(); }

/// What the run reads and writes by name is its own: a link would lead out of the folder, a pipe wait.
void check_entries(const RunDirectory& run) {
  for (const std::string& path :
       {run.config(), run.given_config(), run.metrics(), run.sensors(), run.log(), run.summary(),
        run.checkpoints(), run.bad_steps(), run.tensorboard()}) {
    const bool is_folder =
        path == run.checkpoints() || path == run.bad_steps() || path == run.tensorboard();
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::exists(status)) continue;
    if (fs::is_symlink(status))
      throw DataError(
          fmt::format("{} is a symbolic link: what a run reads and writes stays in its folder{}",
                      path, is_folder ? ". Link the folder of the run instead" : ""));
    if (is_folder ? !fs::is_directory(status) : !fs::is_regular_file(status))
      throw DataError(fmt::format("{} is not a {}", path, is_folder ? "folder" : "regular file"));
  }
}

bool holds_a_run(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / RunDirectory::kConfig, error);
}

/// N of "<name>-N", or 0.
int number_of(const std::string& folder, const std::string& name) {
  if (folder.size() < name.size() + 2 || folder.compare(0, name.size(), name) != 0 ||
      folder[name.size()] != '-')
    return 0;
  const char* first = folder.data() + name.size() + 1;
  const char* last = folder.data() + folder.size();
  int number = 0;
  const auto [end, error] = std::from_chars(first, last, number);
  return error == std::errc() && end == last && number > 0 ? number : 0;
}

int largest_number(const std::string& parent, const std::string& name) {
  std::error_code error;
  int largest = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error))
    largest = std::max(largest, number_of(entry.path().filename().string(), name));
  return largest;
}

}  // namespace

RunDirectory RunDirectory::create(const std::string& path) {
  if (holds_a_run(path))
    throw UsageError(fmt::format(
        "run.dir {} holds a run already: go on with it by --resume, or choose another run.dir",
        path));
  create_folder(path);
  return RunDirectory(path);
}

RunDirectory RunDirectory::create_numbered(const std::string& parent, const std::string& name) {
  create_folder(parent);
  for (int number = largest_number(parent, name) + 1;; ++number) {
    const std::string path = fmt::format("{}/{}-{}", parent, name, number);
    std::error_code error;
    const bool is_new = fs::create_directory(path, error);  // false: another was faster
    if (error)
      throw DataError(fmt::format("cannot create the folder {}: {}", path, error.message()));
    if (!is_new) continue;
    system_files().sync_folder(parent);
    return RunDirectory(path);
  }
}

RunDirectory RunDirectory::open(const std::string& path) {
  if (!fs::is_directory(path)) throw DataError(fmt::format("there is no run {}", path));
  return RunDirectory(path);
}

std::string RunDirectory::latest_numbered(const std::string& parent, const std::string& name) {
  const int number = largest_number(parent, name);
  return number == 0 ? "" : fmt::format("{}/{}-{}", parent, name, number);
}

// The settings that count come first: with them alone a run can be resumed.
void RunDirectory::keep_config(const std::string& resolved, const std::string& given) const {
  write_file_atomically(config(), seal_yaml(with_maker(resolved))).take_or_throw();
  if (!given.empty())
    write_file_atomically(given_config(), seal_yaml(with_maker(given))).take_or_throw();
  else if (std::remove(given_config().c_str()) != 0 && errno != ENOENT)
    throw DataError(fmt::format("cannot remove {}: {}", given_config(), system_reason()));
}

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)) {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) throw DataError(fmt::format("cannot open {}: {}", path_, system_reason()));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw DataError(fmt::format("{} is in use by another fullbore process", path_));
  }
  try {
    check_entries(*this);
    create_folder(checkpoints());
    // A run that is complete writes none of these again.
    for (const std::string& file : {config(), given_config(), summary()})
      AtomicFile::remove_stale(file);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace fullbore

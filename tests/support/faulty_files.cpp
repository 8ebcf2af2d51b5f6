#include "tests/support/faulty_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fullbore::testing {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> contents(const std::string& path) {
  if (!fs::is_regular_file(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

FaultyFiles::~FaultyFiles() {
  for (const auto& [file, path] : open_) system_files().close(file);
}

void FaultyFiles::fail_at(int n, int reason) {
  fail_at_ = n;
  reason_ = reason;
}

void FaultyFiles::kill_at(int n) { kill_at_ = n; }

FaultyFiles::Outcome FaultyFiles::next_operation() {
  const int operation = operations_++;
  if (operation == kill_at_) dead_ = true;
  errno = dead_ ? EIO : reason_;
  return dead_ || operation == fail_at_ ? Outcome::kFails : Outcome::kGoesOn;
}

int FaultyFiles::create(const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  const int file = system_files().create(path);
  if (file >= 0) {
    open_[file] = path;
    unsynced_[path] = 0;
  }
  return file;
}

int FaultyFiles::append(const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().append(path);
}

ssize_t FaultyFiles::write(int file, const void* data, size_t bytes) {
  bytes = std::min(bytes, write_limit_);
  const bool was_dead = dead_;
  if (next_operation() == Outcome::kFails) {
    const int reason = errno;
    if (!was_dead && system_files().write(file, data, bytes / 2) < 0) std::perror("write");
    errno = reason;
    return -1;
  }
  return system_files().write(file, data, bytes);
}

int FaultyFiles::truncate(const std::string& path, uint64_t bytes) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().truncate(path, bytes);
}

int FaultyFiles::sync(int file) {
  if (next_operation() == Outcome::kFails) return -1;
  if (const auto created = open_.find(file); created != open_.end())
    unsynced_.erase(created->second);
  return 0;  // the real one would only make the tests slow
}

int FaultyFiles::close(int file) {
  const Outcome outcome = next_operation();
  const int reason = errno;
  open_.erase(file);
  system_files().close(file);  // the kernel does it for the dead too
  errno = reason;
  return outcome == Outcome::kFails ? -1 : 0;
}

int FaultyFiles::open(const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().open(path);
}

int FaultyFiles::status(int file, FileStatus& status) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().status(file, status);
}

int FaultyFiles::status(const std::string& path, FileStatus& status) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().status(path, status);
}

ssize_t FaultyFiles::read(int file, void* data, size_t bytes, uint64_t offset) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().read(file, data, std::min(bytes, read_limit_), offset);
}

int FaultyFiles::rename(const std::string& from, const std::string& to) {
  if (next_operation() == Outcome::kFails) return -1;
  Rename rename{from, to, contents(to)};
  const int status = system_files().rename(from, to);
  if (status == 0) {
    unsynced_renames_.push_back(std::move(rename));
    if (auto entry = unsynced_.extract(from)) {
      entry.key() = to;
      unsynced_.insert(std::move(entry));
    }
  }
  return status;
}

int FaultyFiles::remove(const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  unsynced_.erase(path);
  return system_files().remove(path);
}

int FaultyFiles::make_folder(const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().make_folder(path);
}

int FaultyFiles::remove_folder(const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().remove_folder(path);
}

int FaultyFiles::make_link(const std::string& target, const std::string& path) {
  if (next_operation() == Outcome::kFails) return -1;
  return system_files().make_link(target, path);
}

std::string FaultyFiles::link_target(const std::string& path) {
  return system_files().link_target(path);
}

int FaultyFiles::sync_folder(const std::string&) {
  if (next_operation() == Outcome::kFails) return -1;
  unsynced_renames_.clear();
  return 0;
}

std::vector<std::string> FaultyFiles::list(const std::string& folder) {
  if (next_operation() == Outcome::kFails) return {};
  return system_files().list(folder);
}

void FaultyFiles::remove_unused(const std::string& path) {
  if (!dead_) system_files().remove_unused(path);
}

void FaultyFiles::cut_power(Loss loss) {
  dead_ = true;
  const bool loses_data = loss != Loss::kNothing && loss != Loss::kRenames;
  for (const auto& [path, synced] : unsynced_) {
    const std::optional<std::string> written = contents(path);
    if (!loses_data || !written) continue;
    if (loss == Loss::kUnsyncedData) put(path, written->substr(0, synced));
    if (loss == Loss::kHalfOfUnsyncedData)
      put(path, written->substr(0, synced + (written->size() - synced) / 2));
    if (loss == Loss::kZeroedUnsyncedData)
      put(path, written->substr(0, synced) + std::string(written->size() - synced, '\0'));
  }
  if (loss != Loss::kRenames) return;
  for (auto rename = unsynced_renames_.rbegin(); rename != unsynced_renames_.rend(); ++rename) {
    fs::rename(rename->to, rename->from);
    if (rename->old_contents) put(rename->to, *rename->old_contents);
  }
}

}  // namespace fullbore::testing

#include "fullbore/base/atomic_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// "<name>.<digits and dots>.tmp": what create() below names its temporaries.
bool is_temporary_of(std::string_view candidate, const std::string& name) {
  constexpr std::string_view kEnd = ".tmp";
  if (candidate.size() <= name.size() + 1 + kEnd.size() || !candidate.starts_with(name + ".") ||
      !candidate.ends_with(kEnd))
    return false;
  candidate.remove_prefix(name.size() + 1);
  candidate.remove_suffix(kEnd.size());
  return candidate.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int file, FileSystem& files)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file), files_(&files) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)),
      files_(other.files_) {}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) files_->close(file_);
  if (!temporary_.empty()) files_->remove(temporary_);
}

void AtomicFile::remove_stale(const std::string& path, FileSystem& files) {
  const std::string folder = folder_of(path);
  const std::string name = std::filesystem::path(path).filename().string();
  for (const std::string& candidate : files.list(folder)) {
    if (is_temporary_of(candidate, name)) files.remove_unused(folder + "/" + candidate);
  }
}

Result<AtomicFile> AtomicFile::create(const std::string& path, FileSystem& files) {
  remove_stale(path, files);
  for (int attempt = 0;; ++attempt) {
    std::string temporary = attempt == 0 ? fmt::format("{}.{}.tmp", path, ::getpid())
                                         : fmt::format("{}.{}.{}.tmp", path, ::getpid(), attempt);
    const int file = files.create(temporary);
    if (file >= 0) return AtomicFile(path, std::move(temporary), file, files);
    if (errno != EEXIST || attempt == 1000)
      return Failure{fmt::format("cannot create {}: {}", temporary, system_reason())};
  }
}

Failure AtomicFile::failure() const {
  return {fmt::format("cannot write {}: {}", path_, system_reason())};
}

Status AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = files_->write(file_, bytes.data(), bytes.size());
    if (written == 0) errno = ENOSPC;  // or this would never end
    if (written <= 0) return failure();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return success();
}

Status AtomicFile::commit() {
  if (files_->sync(file_) != 0) return failure();
  if (files_->rename(temporary_, path_) != 0) return failure();
  temporary_.clear();
  // Closed, and with that unlocked, only after the rename: under its temporary name an unlocked
  // file counts as left behind. An error that close() could report, sync() has reported.
  files_->close(std::exchange(file_, -1));
  if (files_->sync_folder(folder_of(path_)) != 0) return failure();
  return success();
}

}  // namespace fullbore

#include "fullbore/base/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "fullbore/base/atomic_file.h"

namespace fullbore {
namespace {

/// Closes on every way out.
class OpenFile {
 public:
  OpenFile(const std::string& path, FileSystem& files) : files_(files), file_(files.open(path)) {}
  ~OpenFile() {
    if (file_ >= 0) files_.close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return file_; }

 private:
  FileSystem& files_;
  int file_;
};

Failure failure(const char* what, const std::string& path) {
  return {fmt::format("cannot {} {}: {}", what, path, system_reason())};
}

}  // namespace

std::string system_reason() { return std::generic_category().message(errno); }

Result<std::string> read_file(const std::string& path, FileSystem& files, uint64_t most_bytes) {
  const OpenFile file(path, files);
  if (file.get() < 0) return failure("open", path);
  FileStatus status;
  if (files.status(file.get(), status) != 0) return failure("open", path);
  if (status.is_folder) return Failure{fmt::format("{} is a folder, not a file", path)};
  if (!status.is_file) return Failure{fmt::format("{} is not a regular file", path)};
  const auto too_long = [&](std::string_view bytes) {
    return Failure{
        fmt::format("{} is {} bytes long; at most {} are read", path, bytes, most_bytes)};
  };
  if (status.bytes > most_bytes) return too_long(std::to_string(status.bytes));
  std::string contents;
  contents.reserve(status.bytes);  // of files of the kernel 0, or more than there is
  char block[1 << 14];
  for (;;) {
    const ssize_t count = files.read(file.get(), block, sizeof block, contents.size());
    if (count < 0) return failure("read", path);
    if (count == 0) return contents;
    contents.append(block, static_cast<size_t>(count));
    if (contents.size() > most_bytes) return too_long(fmt::format("over {}", most_bytes));
  }
}

Failure cannot_write(const std::string& path, FileSystem& files) {
  Failure failed = failure("write", path);
  if (!files.link_target(path).empty())
    return {fmt::format("{} is a symbolic link: what a run writes stays in its folder", path)};
  FileStatus status;
  if (files.status(path, status) == 0 && !status.is_file)
    return {fmt::format("{} is not a regular file", path)};
  return failed;
}

Status make_own_folder(const std::string& path, FileSystem& files) {
  if (!files.link_target(path).empty())
    return Failure{fmt::format(
        "{} is a symbolic link: what a run writes stays in its folder. Link the folder of the run "
        "instead",
        path)};
  return make_folders(path, files);
}

Status remove_folder_with_contents(const std::string& path, FileSystem& files) {
  if (!files.link_target(path).empty())
    return files.remove(path) == 0 ? success() : Status(failure("remove", path));
  for (const std::string& name : files.list(path)) {
    const std::string inner = path + "/" + name;
    FileStatus status;
    const bool is_folder =
        files.link_target(inner).empty() && files.status(inner, status) == 0 && status.is_folder;
    if (is_folder) {
      if (Status removed = remove_folder_with_contents(inner, files); !removed.ok()) return removed;
    } else if (files.remove(inner) != 0) {
      return failure("remove", inner);
    }
  }
  if (files.remove_folder(path) != 0) return failure("remove", path);
  return success();
}

Status make_folders(const std::string& path, FileSystem& files) {
  FileStatus status;
  if (files.status(path, status) == 0 && status.is_folder) return success();
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty() && parent != path)
    if (!make_folders(parent, files).ok()) return failure("create the folder", path);
  if (files.make_folder(path) != 0 && errno != EEXIST) return failure("create the folder", path);
  if (files.status(path, status) != 0 || !status.is_folder) {
    errno = ENOTDIR;
    return failure("create the folder", path);
  }
  if (files.sync_folder(parent.empty() ? "." : parent) != 0)
    return failure("create the folder", path);
  return success();
}

Status write_file_atomically(const std::string& path, std::string_view contents,
                             FileSystem& files) {
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  if (Status written = file.value().write(contents); !written.ok()) return written;
  return file.value().commit();
}

}  // namespace fullbore

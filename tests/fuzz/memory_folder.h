#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::testing {

/// A folder of this process in memory, where there is a file system for that: readers of folders are fuzzed as they
/// are used, thousands of times a second.
class MemoryFolder {
 public:
  MemoryFolder() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code error;
    std::string path =
        (std::filesystem::is_directory(memory, error) ? memory
                                                      : std::filesystem::temp_directory_path()) /
        "fullbore_fuzz_XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
  }
  ~MemoryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }
  void put(const std::string& name, std::string_view bytes) const {
    const std::string path = path_ + '/' + name;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      std::abort();
    ::close(file);
  }
  void remove(const std::string& name) const { ::unlink((path_ + '/' + name).c_str()); }

 private:
  std::string path_;
};

/// One input for several files: the parts between zero bytes, the last with all that is left. Always `count` of them.
inline std::vector<std::string_view> parts_of(std::string_view bytes, size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    parts.push_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  parts.push_back(bytes);
  return parts;
}

}  // namespace fullbore::testing

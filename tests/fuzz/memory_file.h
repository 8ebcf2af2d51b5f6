#pragma once
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace fullbore::testing {

/// A file in memory that can be opened by its path: readers of files are fuzzed as they are used.
class MemoryFile {
 public:
  MemoryFile(const void* data, size_t size) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

 private:
  int file_;
};

/// A property that holds for all inputs, or the fuzzer has found a bug.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fullbore::testing

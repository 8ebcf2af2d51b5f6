#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fullbore/base/check.h"

namespace fullbore {

/// Memory whose last byte lies before an unreadable page: a kernel that reads or writes one element
/// too many dies. Not where FULLBORE_TEST_GUARDS=off: QEMU 7.2 reads all of a masked AVX load, masked elements too.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (bytes + page - 1) / page * page + page;
    base_ = static_cast<char*>(
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    FB_CHECK(base_ != MAP_FAILED);
    const char* guards = std::getenv("FULLBORE_TEST_GUARDS");
    if (guards == nullptr || std::strcmp(guards, "off") != 0)
      FB_CHECK(::mprotect(base_ + mapped_ - page, page, PROT_NONE) == 0);
    data_ = base_ + mapped_ - page - bytes;
  }
  explicit GuardedMemory(const std::vector<char>& contents) : GuardedMemory(contents.size()) {
    if (bytes_ > 0) std::memcpy(data_, contents.data(), bytes_);
  }
  GuardedMemory(GuardedMemory&& other) noexcept
      : base_(other.base_), data_(other.data_), bytes_(other.bytes_), mapped_(other.mapped_) {
    other.base_ = nullptr;
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    if (base_ != nullptr) ::munmap(base_, mapped_);
  }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  std::vector<char> contents() const { return {data_, data_ + bytes_}; }

 private:
  char* base_ = nullptr;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
};

}  // namespace fullbore

#pragma once
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "tests/support/memory_disk.h"

namespace fullbore::testing {

/// A disk in memory with the rules of O_DIRECT: what is written directly begins and ends at multiples of
/// kDirectAlignment, in the file and in memory, or is EINVAL.
class DirectDisk : public MemoryDisk {
 public:
  enum class Directly {
    kGranted,
    kRefused,   ///< there is no such thing
    kPretends,  ///< there seems to be, until something is written
  };
  explicit DirectDisk(Directly directly) : directly_(directly) {}

  /// What is written from here is counted.
  void watch(std::string_view memory) { watched_ = memory; }
  /// The next write takes so many bytes at most; the ones after it any.
  void cut_next_write(size_t bytes) { cut_ = bytes; }
  /// All that is written beyond so many bytes, of all files, is ENOSPC.
  void limit(uint64_t bytes) { room_ = bytes; }

  uint64_t watched_bytes() const { return watched_bytes_; }  ///< written from there
  uint64_t direct_bytes() const { return direct_bytes_; }
  int misfits() const { return misfits_; }  ///< writes against the rules

  bool write_directly(int file, bool on) override {
    if (directly_ == Directly::kRefused) return false;
    on ? (void)direct_.insert(file) : (void)direct_.erase(file);
    return true;
  }

  ssize_t write(int file, const void* data, size_t bytes) override {
    const bool direct = direct_.count(file) > 0;
    const bool fits = reinterpret_cast<uintptr_t>(data) % kDirectAlignment == 0 &&
                      bytes % kDirectAlignment == 0 && sizes_[file] % kDirectAlignment == 0;
    if (direct && (!fits || directly_ == Directly::kPretends)) {
      if (!fits) ++misfits_;
      errno = EINVAL;
      return -1;
    }
    bytes = std::min({bytes, cut_, static_cast<size_t>(room_)});
    cut_ = SIZE_MAX;
    if (bytes == 0) {
      errno = ENOSPC;
      return -1;
    }
    const ssize_t written = MemoryDisk::write(file, data, bytes);
    if (written < 0) return written;
    const auto count = static_cast<uint64_t>(written);
    sizes_[file] += count;
    room_ -= count;
    if (direct) direct_bytes_ += count;
    const auto address = reinterpret_cast<uintptr_t>(data);
    const auto begin = reinterpret_cast<uintptr_t>(watched_.data());
    if (address >= begin && address < begin + watched_.size()) watched_bytes_ += count;
    return written;
  }

 private:
  Directly directly_;
  std::string_view watched_;
  size_t cut_ = SIZE_MAX;
  uint64_t room_ = UINT64_MAX;
  std::set<int> direct_;
  std::map<int, uint64_t> sizes_;  ///< by file: descriptors are not used twice
  uint64_t watched_bytes_ = 0;
  uint64_t direct_bytes_ = 0;
  int misfits_ = 0;
};

}  // namespace fullbore::testing

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/cuda/loop_programs.h"
#include "tests/support/scratch_folder.h"

namespace fullbore::cuda {

/// Tests with a cache of machine code of their own, empty at first.
class KeptCode : public LoopPrograms {
 protected:
  void SetUp() override;
  /// A folder for a cache that this process has not had, and so has not warned of.
  std::string fresh(const std::string& name) const;
  /// Of the cache that FULLBORE_CACHE names.
  static std::string folder();
  static std::vector<std::string> entries();
  static void write(const std::string& path, const std::string& bytes);
  /// The at-th call of that name from now on fails; of any name: "".
  static void fail(const char* call, int64_t code, int64_t at = 1);

  fullbore::testing::ScratchFolder scratch_;
  Variable cache_{"FULLBORE_CACHE", fresh("cache")};
};

/// While it lives, files keep this process from what their modes forbid, root too. For one test at a time.
class WithoutPrivileges {
 public:
  WithoutPrivileges();
  ~WithoutPrivileges();
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;

 private:
  uint32_t effective_ = 0;
};

/// While it lives, no file grows beyond so many bytes, as on a disk that is full.
class SmallFiles {
 public:
  explicit SmallFiles(uint64_t bytes);
  ~SmallFiles();
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  uint64_t before_;
  void (*signal_)(int);
};

}  // namespace fullbore::cuda

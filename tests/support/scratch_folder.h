#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fullbore::testing {

/// An empty folder of the running test's own, removed with all it holds.
class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    // With the process's number: the same test may run from two builds at once.
    path_ = fmt::format("{}fullbore_{}_{}_{}", ::testing::TempDir(), info->test_suite_name(),
                        info->name(), ::getpid());
    clear();
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  void clear() const {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// Writes a file in the folder and returns its path.
  std::string put(const std::string& name, const std::string& contents) const {
    // Removed, not truncated: ext4 writes a truncated file's new contents out when it is closed.
    std::filesystem::remove(*this / name);
    std::ofstream(*this / name, std::ios::binary) << contents;
    return *this / name;
  }
  int count() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

}  // namespace fullbore::testing

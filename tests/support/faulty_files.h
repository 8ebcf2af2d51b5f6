#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/file_system.h"

namespace fullbore::testing {

/// What a power cut may do to all that was not synced. The last three need no sync to be missing
/// only in part: a file system may write blocks in any order.
enum class Loss { kNothing, kRenames, kUnsyncedData, kHalfOfUnsyncedData, kZeroedUnsyncedData };
inline constexpr Loss kAllLosses[] = {Loss::kNothing, Loss::kRenames, Loss::kUnsyncedData,
                                      Loss::kHalfOfUnsyncedData, Loss::kZeroedUnsyncedData};

/// The system's files, except that the n-th operation (0, 1, ...: every call that may fail, in the
/// order they are called) fails, or is the last.
class FaultyFiles : public FileSystem {
 public:
  ~FaultyFiles() override;

  /// Operation `n` fails with `reason`; a write has by then written half of its bytes.
  void fail_at(int n, int reason);
  /// The process dies in operation `n`: a write has written half, anything else has not happened.
  /// Nothing done later, clearing up included, has an effect.
  void kill_at(int n);
  /// Each write() takes at most `bytes`: a writer must go on from there.
  void limit_writes(size_t bytes) { write_limit_ = bytes; }
  /// The same of read().
  void limit_reads(size_t bytes) { read_limit_ = bytes; }

  int operations() const { return operations_; }
  bool dead() const { return dead_; }

  /// After death: makes the folder what the disk may hold when the machine comes back.
  void cut_power(Loss loss);

  int create(const std::string& path) override;
  int append(const std::string& path) override;
  ssize_t write(int file, const void* data, size_t bytes) override;
  int truncate(const std::string& path, uint64_t bytes) override;
  int sync(int file) override;
  int close(int file) override;
  int open(const std::string& path) override;
  int status(int file, FileStatus& status) override;
  int status(const std::string& path, FileStatus& status) override;
  ssize_t read(int file, void* data, size_t bytes, uint64_t offset) override;
  int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int make_folder(const std::string& path) override;
  int remove_folder(const std::string& path) override;
  int make_link(const std::string& target, const std::string& path) override;
  std::string link_target(const std::string& path) override;
  int sync_folder(const std::string& path) override;
  std::vector<std::string> list(const std::string& folder) override;
  void remove_unused(const std::string& path) override;

 private:
  enum class Outcome { kGoesOn, kFails };
  Outcome next_operation();

  struct Rename {
    std::string from;
    std::string to;
    std::optional<std::string> old_contents;
  };
  int operations_ = 0;
  int fail_at_ = -1;
  int kill_at_ = -1;
  int reason_ = 0;
  bool dead_ = false;
  size_t write_limit_ = ~size_t{0};
  size_t read_limit_ = ~size_t{0};
  std::map<int, std::string> open_;
  std::map<std::string, size_t> unsynced_;  // path -> bytes that are synced
  std::vector<Rename> unsynced_renames_;
};

}  // namespace fullbore::testing

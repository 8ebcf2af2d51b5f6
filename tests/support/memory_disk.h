#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/file_system.h"

namespace fullbore::testing {

/// A disk in memory that knows what has been synced, to cut its power at any operation and look at
/// everything that may then be left.
///
/// The model is stricter than any file system: a file holds what it held at its last sync, all or
/// part of what was written since, or zeros in its place; a folder has the names of its last sync and
/// any subset of the changes since (creations, renames, removals, each whole), in particular without
/// the names of files that were themselves synced. Nothing is promised from one folder to another.
class MemoryDisk : public FileSystem {
 public:
  /// What a power cut makes of all that was not synced.
  enum class Cut { kLosesAll, kKeepsAll, kLosesData, kZeroesData, kDrawsLots };
  static constexpr Cut kCuts[] = {Cut::kLosesAll, Cut::kKeepsAll, Cut::kLosesData, Cut::kZeroesData,
                                  Cut::kDrawsLots};

  MemoryDisk();

  /// The power goes in operation `n` (0, 1, ...: whatever changes the disk or syncs it): a write has
  /// written half of its bytes, anything else has not happened, and all that follows fails.
  void stop_at(int n) { stop_at_ = n; }
  bool stopped() const { return stopped_; }
  int operations() const { return operations_; }

  /// The disk as it may be when the power comes back. `seed` decides the lots.
  MemoryDisk after(Cut cut, uint64_t seed = 0) const;

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
  enum class Kind { kFile, kFolder, kLink };
  using Names = std::map<std::string, int>;
  /// One change of a folder: these names now stand for these nodes; -1: for nothing.
  using Change = std::vector<std::pair<std::string, int>>;
  struct Node {
    Kind kind = Kind::kFile;
    std::string data;    ///< a file's contents, a link's target
    std::string synced;  ///< a file's contents at the last sync
    Names names;
    Names synced_names;
    std::vector<Change> pending;
  };
  struct Place {
    int folder = -1;
    std::string name;
  };

  bool goes_on();  ///< counts an operation; false: the power is gone
  Node& node(int index) { return nodes_[static_cast<size_t>(index)]; }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  std::optional<Place> locate(const std::string& path) const;
  int find(const std::string& path, bool follow = true, int depth = 0) const;  ///< or -1
  int find(const Place& place) const;
  int make(Kind kind, const Place& place, const std::string& data = "");
  int enter(int index);  ///< a descriptor
  void change(int folder, const Change& change);

  std::vector<Node> nodes_;
  std::vector<int> open_;  ///< by descriptor: node, or -1
  int operations_ = 0;
  int stop_at_ = -1;
  bool stopped_ = false;
};

}  // namespace fullbore::testing

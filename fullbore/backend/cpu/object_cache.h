#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace fullbore::jit {

/// Object code on disk, by the text that it was made from. Any number of processes may share the
/// folder: entries are written beside and renamed, and whatever is torn, foreign or of another key
/// counts as absent. A folder that cannot be written to is no error, only slow.
class ObjectCache {
 public:
  /// The folder is created when the first entry is put.
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::string> find(std::string_view key) const;
  void put(std::string_view key, std::string_view object) const;
  std::string path(std::string_view key) const;

 private:
  std::string folder_;
};

}  // namespace fullbore::jit

#pragma once
#include <string>

namespace fullbore {

/// A folder of this process in the folder for temporary files (TMPDIR), which goes with the object. DataError if it
/// cannot be made.
class TemporaryFolder {
 public:
  /// `purpose`: a part of its name, for whoever finds one that was left behind.
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace fullbore

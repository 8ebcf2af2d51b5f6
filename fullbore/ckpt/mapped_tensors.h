#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/mapped_file.h"
#include "fullbore/base/shape.h"

namespace fullbore {

/// A tensor where it lies in a mapped file: at a multiple of its element's size or not.
struct MappedTensor {
  std::string name;
  TensorType type;
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> file;
};

/// The tensors of safetensors files, mapped read-only: nothing of them is read or copied before somebody looks at it,
/// and all steps and processes look at the same pages.
class MappedTensors {
 public:
  /// `path`: a file, or a folder, all of whose files *.safetensors are taken as one model's; what a link in it leads
  /// out to is refused. DataError names the file, and the tensor or the byte: missing, malformed, cut short, a tensor
  /// in two files.
  static MappedTensors open(const std::string& path);
  /// The same of these files of the folder at `path`, whatever else lies there.
  static MappedTensors open(const std::string& path, const std::vector<std::string>& files);

  const std::string& path() const { return path_; }
  const MappedTensor* find(std::string_view name) const;                 ///< nullptr: there is none
  const std::vector<MappedTensor>& tensors() const { return tensors_; }  ///< by name

 private:
  std::string path_;
  std::vector<MappedTensor> tensors_;
};

/// xxHash64 of each tensor, 16 hexadecimal digits, in the order given. Reads all of them once, but for those of files
/// that are known by MappedFile::identity(): of these a cache in the user's own folder tells the hashes.
std::vector<std::string> tensor_hashes(std::span<const MappedTensor* const> tensors);

}  // namespace fullbore

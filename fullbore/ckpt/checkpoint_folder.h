#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ckpt/checkpoint.h"
#include "fullbore/ckpt/manifest.h"

namespace fullbore {

/// Tensors that make one safetensors file, "<name>.safetensors", of a checkpoint.
struct TensorGroup {
  std::string name;
  std::vector<NamedTensor> tensors;
  bool packed = false;  ///< compressed without loss: "<name>.safetensors.fbz"
};

/// What a checkpoint is made of.
struct CheckpointContents {
  std::vector<TensorGroup> groups;
  std::map<std::string, std::string> texts;  ///< by file name
};

/// Writes a folder that must not exist: each file and then the manifest, all synced, and the folder's
/// names. Its own name is the caller's to sync. After a failure there may be part of it.
Status write_checkpoint_folder(const std::string& path, const CheckpointContents& contents,
                               FileSystem& files = system_files());

/// A checkpoint: a folder whose manifest tells each file's size and hash.
class CheckpointFolder {
 public:
  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  bool has_group(const std::string& name) const;

  /// A file's contents, found to be those of the manifest.
  Result<std::string> text(const std::string& name) const;
  /// A group, found in order by the rules of its format. Whether it is what was written is for
  /// verify() to say.
  Result<Checkpoint> group(const std::string& name) const;
  std::vector<std::string> groups() const;  ///< names
  /// Reads every file once and compares it with the manifest.
  Status verify() const;

 private:
  friend Result<CheckpointFolder> open_checkpoint_folder(const std::string&, FileSystem&);
  CheckpointFolder(std::string path, Manifest manifest, FileSystem& files)
      : path_(std::move(path)), manifest_(std::move(manifest)), files_(&files) {}
  Status verify_file(const std::string& name, const ManifestEntry& entry) const;
  /// The path of a file, which is no link: a stranger's would lead anywhere.
  Result<std::string> own_file(const std::string& name) const;
  std::string file_of(const std::string& group) const;  ///< "" if there is none

  std::string path_;
  Manifest manifest_;
  FileSystem* files_;
};

/// Fills every slot from the group that holds the tensor of its name, as restore() does from a file.
Status restore(const CheckpointFolder& checkpoint, std::span<const TensorSlot> slots,
               UnknownTensors unknown = UnknownTensors::kRefuse);

/// Reads the manifest and compares it with its own checksum. Failure names the path and the reason.
Result<CheckpointFolder> open_checkpoint_folder(const std::string& path,
                                                FileSystem& files = system_files());

}  // namespace fullbore

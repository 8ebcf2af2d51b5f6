#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"
#include "fullbore/ckpt/byte_source.h"
#include "fullbore/ckpt/safetensors.h"

namespace fullbore {

/// A tensor to be written: at `data`, or, where it does not lie in memory of the host, handed out by `pieces`, which
/// calls what it is given for one piece after another.
struct NamedTensor {
  using Take = std::function<void(std::span<const std::byte> piece)>;
  std::string name;
  TensorType type;
  const void* data = nullptr;
  std::function<void(const Take& take)> pieces = {};
};

/// A place to be filled from a checkpoint: at `data`, or by `pieces`, which calls what it is given for pieces that
/// together are the tensor. With neither its name and type are compared and nothing is read.
struct TensorSlot {
  using Fill = std::function<void(int64_t offset, std::span<std::byte> piece)>;
  std::string name;
  TensorType type;
  void* data = nullptr;
  std::function<void(const Fill& fill)> pieces = {};
};

/// As they follow one another in a file, without gaps: largest elements first, so that each is aligned,
/// otherwise as they were. Names must be unique.
std::vector<NamedTensor> in_file_order(std::span<const NamedTensor> tensors);

/// Writes one safetensors file, atomically: after a failure or a crash at any moment the file is
/// what it was before, or the new one, whole. To the metadata come the keys
///   fullbore.format           "1"
///   fullbore.checksum.data    xxHash64 of the data, 16 hexadecimal digits
///   fullbore.checksum.header  xxHash64 of length and header, these 16 digits taken as zeros
/// Names must be unique. Failure names the path and the system's reason (a full disk).
Status write_checkpoint(const std::string& path, std::span<const NamedTensor> tensors,
                        const Metadata& metadata, FileSystem& files = system_files());

/// The bytes of one safetensors file, header first, to `sink`, without the keys of checksums: for
/// files that a manifest vouches for. `width`: bytes per element of what is handed over, which is as much
/// at once as lies together in memory. From 1 MiB of data on they begin at a multiple of kDirectAlignment.
Status encode_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata,
                          const std::function<Status(std::string_view bytes, int width)>& sink);

/// A safetensors file that was opened and found in order. The tensors stay on disk until read.
class Checkpoint {
 public:
  const std::string& path() const { return source_->path(); }
  const Metadata& metadata() const { return header_.metadata; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const StoredTensor* find(std::string_view name) const;  ///< nullptr: there is none
  /// The tensor's bytes to `data`, which has room for tensor.bytes().
  Status read(const StoredTensor& tensor, void* data) const;
  /// `bytes` of the tensor from its byte `offset` on; the part must lie within the tensor.
  Status read_part(const StoredTensor& tensor, uint64_t offset, size_t bytes, void* data) const;

 private:
  friend class CheckpointReader;
  Checkpoint(std::unique_ptr<ByteSource> source, SafetensorsHeader header, uint64_t data_offset);
  std::unique_ptr<ByteSource> source_;
  SafetensorsHeader header_;
  uint64_t data_offset_;
};

enum class Verify {
  kStructure,  ///< the format's own rules: for files of other programs, which carry no checksums
  kHeader,     ///< and the checksum of the header: cheap, enough to trust the metadata
  kEverything  ///< and the checksum of the data: reads the whole file once
};

/// Failure names path, offset or tensor, and reason; no bytes whatever do anything worse.
Result<Checkpoint> read_checkpoint(const std::string& path, Verify verify = Verify::kEverything,
                                   FileSystem& files = system_files());

enum class UnknownTensors { kRefuse, kIgnore };

/// Fills every slot from the tensor of its name. Names and types are compared first: if one is
/// missing or of another type, or (kRefuse) the file has a tensor for which there is no slot,
/// nothing is written and the Failure lists what differs: the checkpoint is of another model.
Status restore(const Checkpoint& checkpoint, std::span<const TensorSlot> slots,
               UnknownTensors unknown = UnknownTensors::kRefuse);
/// The same from several files that are one checkpoint, named `path` in messages.
Status restore(const std::string& path, std::span<const Checkpoint> files,
               std::span<const TensorSlot> slots, UnknownTensors unknown);

}  // namespace fullbore

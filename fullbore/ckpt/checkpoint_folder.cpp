#include "fullbore/ckpt/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/input_file.h"
#include "fullbore/ckpt/checksum.h"
#include "fullbore/ckpt/packed_file.h"

namespace fullbore {
namespace {

constexpr std::string_view kTensorSuffix = ".safetensors";
// What is copied is still in a cache of the processor when it is hashed.
constexpr size_t kPieceBytes = size_t{1} << 20;

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};

/// A file of a folder that nobody knows of yet: hashed as it is written. What is large goes past the
/// page cache, in pieces of a buffer of ours: copying gigabytes into pages that nobody will read costs
/// the training loop more processor time than all the rest of a save.
class FolderFile {
 public:
  FolderFile(const std::string& path, FileSystem& files)
      : path_(path), files_(files), file_(files.create(path)) {}
  ~FolderFile() {
    if (file_ >= 0) files_.close(file_);
  }
  FolderFile(const FolderFile&) = delete;
  FolderFile& operator=(const FolderFile&) = delete;

  Status write(std::string_view bytes) {
    if (file_ < 0) return failure("create");
    if (!buffer_) {
      buffer_.reset(static_cast<char*>(std::aligned_alloc(kDirectAlignment, kPieceBytes)));
      if (!buffer_) throw std::bad_alloc();
    }
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kPieceBytes - buffered_);
      std::memcpy(buffer_.get() + buffered_, bytes.data(), count);
      buffered_ += count;
      bytes.remove_prefix(count);
      if (buffered_ < kPieceBytes) break;
      if (bytes_ == 0) direct_ = files_.write_directly(file_, true);
      if (Status status = flush(); !status.ok()) return status;
    }
    return success();
  }

  Result<ManifestEntry> finish() {
    if (file_ < 0) return failure("create");
    // The rest is of any size.
    if (direct_ && !files_.write_directly(file_, false)) return failure("write");
    direct_ = false;
    if (Status status = flush(); !status.ok()) return Failure{status.error()};
    if (files_.sync(file_) != 0) return failure("write");
    if (files_.close(std::exchange(file_, -1)) != 0) return failure("write");
    return ManifestEntry{bytes_, hash_.value()};
  }

 private:
  Failure failure(const char* what) const {
    return {fmt::format("cannot {} {}: {}", what, path_, system_reason())};
  }
  Status flush() {
    std::string_view rest(buffer_.get(), buffered_);
    hash_.add(rest.data(), rest.size());
    bytes_ += rest.size();
    buffered_ = 0;
    while (!rest.empty()) {
      const ssize_t written = files_.write(file_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      // A file system that does not write directly after all, or that has left a part of a block.
      const bool misfit = written < 0 ? errno == EINVAL : written % kDirectAlignment != 0;
      if (direct_ && misfit) {
        if (!files_.write_directly(file_, false)) return failure("write");
        direct_ = false;
      } else if (written <= 0) {
        if (written == 0) errno = ENOSPC;  // or this would never end
        return failure("write");
      }
      if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
    }
    return success();
  }

  std::string path_;
  FileSystem& files_;
  int file_;
  bool direct_ = false;
  std::unique_ptr<char, Free> buffer_;
  size_t buffered_ = 0;
  uint64_t bytes_ = 0;
  StreamingHash hash_;
};

Result<ManifestEntry> write_text(const std::string& path, std::string_view text,
                                 FileSystem& files) {
  FolderFile file(path, files);
  if (Status status = file.write(text); !status.ok()) return Failure{status.error()};
  return file.finish();
}

Result<ManifestEntry> write_group(const std::string& path, const TensorGroup& group,
                                  FileSystem& files) {
  FolderFile file(path, files);
  std::optional<Packer> packer;
  if (group.packed) packer.emplace([&](std::string_view bytes) { return file.write(bytes); });
  const Status status =
      encode_safetensors(group.tensors, {}, [&](std::string_view bytes, int width) {
        return packer ? packer->write(bytes, width) : file.write(bytes);
      });
  if (!status.ok()) return Failure{status.error()};
  return file.finish();
}

}  // namespace

Status write_checkpoint_folder(const std::string& path, const CheckpointContents& contents,
                               FileSystem& files) {
  if (files.make_folder(path) != 0)
    return Failure{fmt::format("cannot create {}: {}", path, system_reason())};
  Manifest manifest;
  for (const TensorGroup& group : contents.groups) {
    std::string name = group.name + std::string(kTensorSuffix);
    if (group.packed) name += kPackedSuffix;
    const Result<ManifestEntry> entry = write_group(path + "/" + name, group, files);
    if (!entry.ok()) return Failure{entry.error()};
    FB_CHECK(manifest.emplace(name, entry.value()).second, "'{}' occurs twice", name);
  }
  for (const auto& [name, text] : contents.texts) {
    const Result<ManifestEntry> entry = write_text(path + "/" + name, text, files);
    if (!entry.ok()) return Failure{entry.error()};
    FB_CHECK(manifest.emplace(name, entry.value()).second, "'{}' occurs twice", name);
  }
  const Result<ManifestEntry> last =
      write_text(path + "/" + kManifestName, encode_manifest(manifest), files);
  if (!last.ok()) return Failure{last.error()};
  if (files.sync_folder(path) != 0)
    return Failure{fmt::format("cannot write {}: {}", path, system_reason())};
  return success();
}

std::string CheckpointFolder::file_of(const std::string& group) const {
  std::string name = group + std::string(kTensorSuffix);
  if (manifest_.count(name) > 0) return name;
  name += kPackedSuffix;
  return manifest_.count(name) > 0 ? name : "";
}

bool CheckpointFolder::has_group(const std::string& name) const { return !file_of(name).empty(); }

std::vector<std::string> CheckpointFolder::groups() const {
  std::vector<std::string> names;
  for (const auto& [file, entry] : manifest_) {
    std::string_view name = file;
    if (name.ends_with(kPackedSuffix)) name.remove_suffix(kPackedSuffix.size());
    if (name.ends_with(kTensorSuffix))
      names.emplace_back(name.substr(0, name.size() - kTensorSuffix.size()));
  }
  return names;
}

Result<std::string> CheckpointFolder::text(const std::string& name) const {
  const auto entry = manifest_.find(name);
  if (entry == manifest_.end())
    return Failure{fmt::format("{}: the manifest knows no {}", path_, name)};
  Result<std::string> text = read_file(path_ + "/" + name, *files_);
  if (!text.ok()) return text;
  if (text.value().size() != entry->second.bytes || hash_text(text.value()) != entry->second.hash)
    return Failure{
        fmt::format("{}/{}: it is not what the manifest says: {} bytes, xxHash64 {}; {} and "
                    "{} were expected",
                    path_, name, text.value().size(), hash_hex(hash_text(text.value())),
                    entry->second.bytes, hash_hex(entry->second.hash))};
  return text;
}

Result<Checkpoint> CheckpointFolder::group(const std::string& name) const {
  const std::string file = file_of(name);
  if (file.empty())
    return Failure{fmt::format("{}: the manifest knows no {}{}", path_, name, kTensorSuffix)};
  return read_checkpoint(path_ + "/" + file, Verify::kStructure, *files_);
}

Status CheckpointFolder::verify_file(const std::string& name, const ManifestEntry& entry) const {
  const Result<InputFile> file = InputFile::open(path_ + "/" + name, *files_);
  if (!file.ok()) return Failure{file.error()};
  const std::string& path = file.value().path();
  if (file.value().bytes() != entry.bytes)
    return Failure{
        fmt::format("{}: {} bytes long, {} were written", path, file.value().bytes(), entry.bytes)};
  StreamingHash hash;
  std::vector<char> piece(std::min<uint64_t>(entry.bytes, kPieceBytes));
  for (uint64_t at = 0; at < entry.bytes;) {
    const size_t bytes = std::min<uint64_t>(piece.size(), entry.bytes - at);
    if (Status status = file.value().read_exactly(at, piece.data(), bytes); !status.ok())
      return status;
    hash.add(piece.data(), bytes);
    at += bytes;
  }
  if (hash.value() != entry.hash)
    return Failure{fmt::format("{}: its checksum is {}, {} was expected", path,
                               hash_hex(hash.value()), hash_hex(entry.hash))};
  return success();
}

Status CheckpointFolder::verify() const {
  for (const auto& [name, entry] : manifest_)
    if (Status status = verify_file(name, entry); !status.ok()) return status;
  return success();
}

Status restore(const CheckpointFolder& checkpoint, std::span<const TensorSlot> slots,
               UnknownTensors unknown) {
  std::vector<Checkpoint> files;
  for (const std::string& name : checkpoint.groups()) {
    Result<Checkpoint> file = checkpoint.group(name);
    if (!file.ok()) return Failure{file.error()};
    files.push_back(std::move(file).value());
  }
  return restore(checkpoint.path(), files, slots, unknown);
}

Result<CheckpointFolder> open_checkpoint_folder(const std::string& path, FileSystem& files) {
  const std::string name = path + "/" + kManifestName;
  const Result<std::string> text = read_file(name, files);
  if (!text.ok()) return Failure{text.error()};
  Result<Manifest> manifest = parse_manifest(text.value());
  if (!manifest.ok()) return Failure{fmt::format("{}: {}", name, manifest.error())};
  return CheckpointFolder(path, std::move(manifest).value(), files);
}

}  // namespace fullbore

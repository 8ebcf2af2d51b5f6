#include "fullbore/ckpt/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/input_file.h"
#include "fullbore/ckpt/checksum.h"
#include "fullbore/ckpt/hashed_file.h"
#include "fullbore/ckpt/packed_file.h"

namespace fullbore {
namespace {

constexpr std::string_view kTensorSuffix = ".safetensors";
constexpr size_t kPieceBytes = size_t{1} << 20;

Result<ManifestEntry> write_text(const std::string& path, std::string_view text,
                                 FileSystem& files) {
  HashedFile file(path, files);
  if (Status status = file.write(text); !status.ok()) return Failure{status.error()};
  return file.finish();
}

Result<ManifestEntry> write_group(const std::string& path, const TensorGroup& group,
                                  FileSystem& files) {
  HashedFile file(path, files);
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

Result<std::string> CheckpointFolder::own_file(const std::string& name) const {
  std::string path = path_ + "/" + name;
  if (!files_->link_target(path).empty())
    return Failure{fmt::format("{} is a symbolic link: a checkpoint's files are its own", path)};
  return path;
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
  const Result<std::string> own = own_file(name);
  if (!own.ok()) return Failure{own.error()};
  Result<std::string> text = read_file(own.value(), *files_);
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
  const Result<std::string> own = own_file(file);
  if (!own.ok()) return Failure{own.error()};
  return read_checkpoint(own.value(), Verify::kStructure, *files_);
}

Status CheckpointFolder::verify_file(const std::string& name, const ManifestEntry& entry) const {
  const Result<std::string> own = own_file(name);
  if (!own.ok()) return Failure{own.error()};
  const Result<InputFile> file = InputFile::open(own.value(), *files_);
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
  if (!files.link_target(name).empty())
    return Failure{fmt::format("{} is a symbolic link: a checkpoint's files are its own", name)};
  const Result<std::string> text = read_file(name, files);
  if (!text.ok()) return Failure{text.error()};
  Result<Manifest> manifest = parse_manifest(text.value());
  if (!manifest.ok()) return Failure{fmt::format("{}: {}", name, manifest.error())};
  return CheckpointFolder(path, std::move(manifest).value(), files);
}

}  // namespace fullbore

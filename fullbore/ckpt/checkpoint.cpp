#include "fullbore/ckpt/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "fullbore/base/hash.h"
#include "fullbore/ckpt/checksum.h"

namespace fullbore {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

Checkpoint::Checkpoint(std::unique_ptr<ByteSource> source, SafetensorsHeader header,
                       uint64_t data_offset)
    : source_(std::move(source)), header_(std::move(header)), data_offset_(data_offset) {}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = std::find_if(tensors().begin(), tensors().end(),
                                  [&](const StoredTensor& t) { return t.name == name; });
  return found == tensors().end() ? nullptr : &*found;
}

Status Checkpoint::read(const StoredTensor& tensor, void* data) const {
  if (tensor.bytes() == 0) return success();
  return source_->read_exactly(data_offset_ + tensor.begin, data,
                               static_cast<size_t>(tensor.bytes()));
}

Status Checkpoint::read_part(const StoredTensor& tensor, uint64_t offset, size_t bytes,
                             void* data) const {
  FB_CHECK(offset <= tensor.bytes() && bytes <= tensor.bytes() - offset,
           "bytes {} to {} of '{}', which has {}", offset, offset + bytes, tensor.name,
           tensor.bytes());
  if (bytes == 0) return success();
  return source_->read_exactly(data_offset_ + tensor.begin + offset, data, bytes);
}

/// The steps of read_checkpoint(), each of which may be the one that fails.
class CheckpointReader {
 public:
  explicit CheckpointReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  Result<Checkpoint> read(Verify verify) && {
    if (Status status = read_header(); !status.ok()) return located(status);
    if (verify >= Verify::kHeader)
      if (Status status = check_header(); !status.ok()) return located(status);
    if (verify >= Verify::kEverything)
      if (Status status = check_data(); !status.ok()) return located(status);
    return Checkpoint(std::move(source_), std::move(header_), data_offset());
  }

 private:
  Failure located(const Status& status) const {
    const bool has_path = status.error().find(source_->path()) != std::string::npos;
    return {has_path ? status.error() : fmt::format("{}: {}", source_->path(), status.error())};
  }
  uint64_t data_offset() const { return kSafetensorsLengthBytes + json_.size(); }

  Status read_header() {
    uint64_t length = 0;
    if (source_->bytes() < sizeof length)
      return Failure{fmt::format("{} bytes long; a checkpoint begins with 8 bytes of header length",
                                 source_->bytes())};
    if (Status status = source_->read_exactly(0, &length, sizeof length); !status.ok())
      return status;
    if (length > kMostSafetensorsHeaderBytes)
      return Failure{fmt::format("byte 0: a header of {} bytes; at most {} are allowed", length,
                                 kMostSafetensorsHeaderBytes)};
    if (length > source_->bytes() - sizeof length)
      return Failure{fmt::format("byte 0: a header of {} bytes, but the file ends after {}", length,
                                 source_->bytes() - sizeof length)};
    json_.resize(static_cast<size_t>(length));
    if (Status status = source_->read_exactly(sizeof length, json_.data(), json_.size());
        !status.ok())
      return status;
    Result<SafetensorsHeader> header =
        parse_safetensors_header(json_, source_->bytes() - data_offset());
    if (!header.ok()) return Failure{header.error()};
    header_ = std::move(header).value();
    return success();
  }

  Result<std::string> metadata(std::string_view key) const {
    const auto entry = header_.metadata.find(key);
    if (entry == header_.metadata.end())
      return Failure{
          fmt::format("the metadata lacks '{}': not written by Fullbore, or damaged", key)};
    return entry->second;
  }

  Status check_header() const {
    const Result<std::string> expected = metadata(kHeaderChecksumKey);
    if (!expected.ok()) return Failure{expected.error()};
    std::string json = json_;
    const std::string written = header_checksum_text(expected.value());
    const size_t place = json.find(written);
    if (expected.value().size() == kZeroChecksum.size() && place != std::string::npos)
      json.replace(place, written.size(), header_checksum_text(kZeroChecksum));
    const std::string found = hash_hex(header_checksum(json));
    if (found != expected.value())
      return Failure{fmt::format("bytes 0-{}: the header's checksum is {}, {} was expected",
                                 data_offset() - 1, found, expected.value())};
    const Result<std::string> format = metadata(kFormatKey);
    if (!format.ok()) return Failure{format.error()};
    if (format.value() != kFormatVersion)
      return Failure{
          fmt::format("format version {} is not known; {} is: written by a newer Fullbore",
                      format.value(), kFormatVersion)};
    return success();
  }

  Status check_data() const {
    const Result<std::string> expected = metadata(kDataChecksumKey);
    if (!expected.ok()) return Failure{expected.error()};
    StreamingHash hash;
    std::vector<char> block(
        std::min<uint64_t>(source_->bytes() - data_offset(), uint64_t{1} << 20));
    for (uint64_t at = data_offset(); at < source_->bytes();) {
      const size_t bytes = std::min<uint64_t>(block.size(), source_->bytes() - at);
      if (Status status = source_->read_exactly(at, block.data(), bytes); !status.ok())
        return status;
      hash.add(block.data(), bytes);
      at += bytes;
    }
    const std::string found = hash_hex(hash.value());
    if (found != expected.value())
      return Failure{fmt::format("bytes {}-{}: the data's checksum is {}, {} was expected",
                                 data_offset(), source_->bytes() - 1, found, expected.value())};
    return success();
  }

  std::unique_ptr<ByteSource> source_;
  std::string json_;
  SafetensorsHeader header_;
};

Result<Checkpoint> read_checkpoint(const std::string& path, Verify verify, FileSystem& files) {
  Result<std::unique_ptr<ByteSource>> source = open_byte_source(path, files);
  if (!source.ok()) return Failure{source.error()};
  return CheckpointReader(std::move(source).value()).read(verify);
}

namespace {

/// "a; b; c; and 12 more"
std::string listed(const std::vector<std::string>& items) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), kMost); ++i) text += (i > 0 ? "; " : "") + items[i];
  if (items.size() > kMost) text += fmt::format("; and {} more", items.size() - kMost);
  return text;
}

Status fill(const Checkpoint& file, const StoredTensor& tensor, const TensorSlot& slot) {
  if (slot.data != nullptr) return file.read(tensor, slot.data);
  Status status = success();
  slot.pieces([&](int64_t offset, std::span<std::byte> piece) {
    if (status.ok())
      status = file.read_part(tensor, static_cast<uint64_t>(offset), piece.size(), piece.data());
  });
  return status;
}

}  // namespace

Status restore(const Checkpoint& checkpoint, std::span<const TensorSlot> slots,
               UnknownTensors unknown) {
  return restore(checkpoint.path(), std::span(&checkpoint, 1), slots, unknown);
}

Status restore(const std::string& path, std::span<const Checkpoint> files,
               std::span<const TensorSlot> slots, UnknownTensors unknown) {
  struct Stored {
    const Checkpoint* file;
    const StoredTensor* tensor;
  };
  std::map<std::string_view, Stored> stored;
  for (const Checkpoint& file : files)
    for (const StoredTensor& tensor : file.tensors()) stored[tensor.name] = {&file, &tensor};
  std::vector<std::string> differences;
  std::vector<std::pair<Stored, const TensorSlot*>> reads;
  for (const TensorSlot& slot : slots) {
    const auto found = stored.find(slot.name);
    if (found == stored.end()) {
      differences.push_back(fmt::format("'{}' {} is not in it", slot.name, slot.type.text()));
      continue;
    }
    const TensorType& type = found->second.tensor->type;
    if (type != slot.type)
      differences.push_back(
          fmt::format("'{}' is {} in it, {} here", slot.name, type.text(), slot.type.text()));
    if (slot.data != nullptr || slot.pieces) reads.emplace_back(found->second, &slot);
    stored.erase(found);
  }
  if (unknown == UnknownTensors::kRefuse)
    for (const auto& [name, found] : stored)
      differences.push_back(fmt::format("'{}' {} is in it alone", name, found.tensor->type.text()));
  if (!differences.empty())
    return Failure{fmt::format("{}: a checkpoint of another model: {}", path, listed(differences))};
  for (const auto& [found, slot] : reads)
    if (Status status = fill(*found.file, *found.tensor, *slot); !status.ok()) return status;
  return success();
}

}  // namespace fullbore

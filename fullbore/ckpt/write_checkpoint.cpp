#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/hash.h"
#include "fullbore/ckpt/checkpoint.h"
#include "fullbore/ckpt/checksum.h"

namespace fullbore {
namespace {

std::string_view bytes_of(const NamedTensor& tensor) {
  return {static_cast<const char*>(tensor.data), static_cast<size_t>(tensor.type.bytes())};
}

/// Largest elements first: every offset is then a multiple of the element size.
std::vector<NamedTensor> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> ordered(tensors.begin(), tensors.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return dtype_bytes(a.type.dtype) > dtype_bytes(b.type.dtype);
  });
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : ordered)
    FB_CHECK(names.insert(tensor.name).second, "tensor '{}' occurs twice", tensor.name);
  return ordered;
}

SafetensorsHeader header_of(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  SafetensorsHeader header;
  uint64_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    const auto bytes = static_cast<uint64_t>(tensor.type.bytes());
    header.tensors.push_back({tensor.name, tensor.type, at, at + bytes});
    at += bytes;
  }
  header.metadata = metadata;
  return header;
}

Result<std::string> encode_signed_header(const std::vector<NamedTensor>& tensors,
                                         const Metadata& metadata) {
  SafetensorsHeader header = header_of(tensors, metadata);
  StreamingHash data_hash;
  for (const NamedTensor& tensor : tensors)
    data_hash.add(tensor.data, static_cast<size_t>(tensor.type.bytes()));
  header.metadata[std::string(kFormatKey)] = kFormatVersion;
  header.metadata[std::string(kDataChecksumKey)] = hash_hex(data_hash.value());
  header.metadata[std::string(kHeaderChecksumKey)] = kZeroChecksum;
  Result<std::string> json = encode_safetensors_header(header);
  if (!json.ok()) return json;
  const std::string zeros = header_checksum_text(kZeroChecksum);
  json.value().replace(json.value().find(zeros), zeros.size(),
                       header_checksum_text(hash_hex(header_checksum(json.value()))));
  return json;
}

/// With its length before it.
std::string with_length(const std::string& header) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
}

}  // namespace

Status encode_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata,
                          const std::function<Status(std::string_view bytes, int width)>& sink) {
  const std::vector<NamedTensor> ordered = in_file_order(tensors);
  const Result<std::string> header = encode_safetensors_header(header_of(ordered, metadata));
  if (!header.ok()) return Failure{header.error()};
  if (Status status = sink(with_length(header.value()), 1); !status.ok()) return status;
  for (const NamedTensor& tensor : ordered)
    if (Status status = sink(bytes_of(tensor), static_cast<int>(dtype_bytes(tensor.type.dtype)));
        !status.ok())
      return status;
  return success();
}

Status write_checkpoint(const std::string& path, std::span<const NamedTensor> tensors,
                        const Metadata& metadata, FileSystem& files) {
  const std::vector<NamedTensor> ordered = in_file_order(tensors);
  const Result<std::string> header = encode_signed_header(ordered, metadata);
  if (!header.ok()) return Failure{fmt::format("cannot write {}: {}", path, header.error())};

  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  if (Status status = file.value().write(with_length(header.value())); !status.ok()) return status;
  for (const NamedTensor& tensor : ordered)
    if (Status status = file.value().write(bytes_of(tensor)); !status.ok()) return status;
  return file.value().commit();
}

}  // namespace fullbore

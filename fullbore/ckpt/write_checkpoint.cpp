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

Result<std::string> encode_header(const std::vector<NamedTensor>& tensors,
                                  const Metadata& metadata) {
  SafetensorsHeader header;
  StreamingHash data_hash;
  uint64_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::string_view bytes = bytes_of(tensor);
    data_hash.add(bytes.data(), bytes.size());
    header.tensors.push_back({tensor.name, tensor.type, at, at + bytes.size()});
    at += bytes.size();
  }
  header.metadata = metadata;
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

}  // namespace

Status write_checkpoint(const std::string& path, std::span<const NamedTensor> tensors,
                        const Metadata& metadata, FileSystem& files) {
  const std::vector<NamedTensor> ordered = in_file_order(tensors);
  const Result<std::string> header = encode_header(ordered, metadata);
  if (!header.ok()) return Failure{fmt::format("cannot write {}: {}", path, header.error())};

  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  const uint64_t length = header.value().size();
  std::string beginning(reinterpret_cast<const char*>(&length), sizeof length);
  beginning += header.value();
  if (Status status = file.value().write(beginning); !status.ok()) return status;
  for (const NamedTensor& tensor : ordered)
    if (Status status = file.value().write(bytes_of(tensor)); !status.ok()) return status;
  return file.value().commit();
}

}  // namespace fullbore

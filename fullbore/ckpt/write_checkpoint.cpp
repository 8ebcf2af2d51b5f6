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

/// Hands the tensor's bytes to `sink` until that fails.
Status in_pieces(const NamedTensor& tensor, const std::function<Status(std::string_view)>& sink) {
  if (!tensor.pieces) return sink(bytes_of(tensor));
  Status status = success();
  tensor.pieces([&](std::span<const std::byte> piece) {
    if (status.ok()) status = sink({reinterpret_cast<const char*>(piece.data()), piece.size()});
  });
  return status;
}

// From so many bytes of data on they begin on a page: files of tensors that lie in memory as they do in
// the file are then written from there. Smaller ones stay small.
constexpr uint64_t kLeastPagedBytes = uint64_t{1} << 20;

uint64_t data_alignment(const SafetensorsHeader& header) {
  const uint64_t data_bytes = header.tensors.empty() ? 0 : header.tensors.back().end;
  return data_bytes >= kLeastPagedBytes ? kDirectAlignment : kLeastSafetensorsAlignment;
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
  for (const NamedTensor& tensor : tensors) {
    const Status hashed = in_pieces(tensor, [&](std::string_view piece) {
      data_hash.add(piece.data(), piece.size());
      return success();
    });
    if (!hashed.ok()) return Failure{hashed.error()};
  }
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

/// Tensors that follow one another in memory as they do in the file, with elements of one width.
struct Run {
  std::string_view bytes;
  int width;
  size_t tensors;
};

Run run_from(const std::vector<NamedTensor>& tensors, size_t first) {
  const auto width = [&](size_t i) { return static_cast<int>(dtype_bytes(tensors[i].type.dtype)); };
  Run run{bytes_of(tensors[first]), width(first), 1};
  for (size_t i = first + 1; i < tensors.size(); ++i, ++run.tensors) {
    if (width(i) != run.width || tensors[i].pieces ||
        tensors[i].data != run.bytes.data() + run.bytes.size())
      break;
    run.bytes = {run.bytes.data(), run.bytes.size() + bytes_of(tensors[i]).size()};
  }
  return run;
}

}  // namespace

std::vector<NamedTensor> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> ordered(tensors.begin(), tensors.end());
  // Every offset is then a multiple of the element size.
  std::stable_sort(ordered.begin(), ordered.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return dtype_bytes(a.type.dtype) > dtype_bytes(b.type.dtype);
  });
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : ordered)
    FB_CHECK(names.insert(tensor.name).second, "tensor '{}' occurs twice", tensor.name);
  return ordered;
}

Status encode_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata,
                          const std::function<Status(std::string_view bytes, int width)>& sink) {
  const std::vector<NamedTensor> ordered = in_file_order(tensors);
  const SafetensorsHeader fields = header_of(ordered, metadata);
  const Result<std::string> header = encode_safetensors_header(fields, data_alignment(fields));
  if (!header.ok()) return Failure{header.error()};
  if (Status status = sink(with_length(header.value()), 1); !status.ok()) return status;
  for (size_t i = 0; i < ordered.size();) {
    if (ordered[i].pieces) {
      const auto width = static_cast<int>(dtype_bytes(ordered[i].type.dtype));
      const Status status =
          in_pieces(ordered[i++], [&](std::string_view piece) { return sink(piece, width); });
      if (!status.ok()) return status;
      continue;
    }
    const Run run = run_from(ordered, i);
    i += run.tensors;
    if (run.bytes.empty()) continue;
    if (Status status = sink(run.bytes, run.width); !status.ok()) return status;
  }
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
    if (Status status =
            in_pieces(tensor, [&](std::string_view piece) { return file.value().write(piece); });
        !status.ok())
      return status;
  return file.value().commit();
}

}  // namespace fullbore

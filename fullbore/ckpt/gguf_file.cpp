#include "fullbore/ckpt/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/check.h"
#include "fullbore/base/dtype.h"

namespace fullbore {
namespace {

constexpr size_t kFirstBytes = size_t{1} << 20;
constexpr size_t kBlock = kGgufBlock;

uint16_t half_at(const char* bytes) {
  uint16_t half = 0;
  std::memcpy(&half, bytes, 2);
  return half;
}

void append_half(std::string& bytes, uint16_t half) {
  bytes.append(reinterpret_cast<const char*>(&half), 2);
}

/// As ggml's reference rounds: q = round(x / d) with d before it becomes f16, halves away from zero.
void append_q8(std::span<const float> block, std::string& bytes) {
  float most = 0;
  for (const float value : block) most = std::max(most, std::fabs(value));
  const float scale = most / 127;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  append_half(bytes, f32_to_f16(scale));
  for (const float value : block)
    bytes.push_back(static_cast<char>(static_cast<int8_t>(std::round(value * inverse))));
}

}  // namespace

void encode_gguf_values(GgufType type, std::span<const float> values, std::string& bytes) {
  FB_CHECK(type != GgufType::q4_1, "Q4_1 is read only");
  switch (type) {
    case GgufType::f32:
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
      return;
    case GgufType::f16:
      for (const float value : values) append_half(bytes, f32_to_f16(value));
      return;
    case GgufType::bf16:
      for (const float value : values) append_half(bytes, f32_to_bf16(value));
      return;
    default: break;
  }
  FB_CHECK(values.size() % kBlock == 0, "{} values", values.size());
  for (size_t at = 0; at < values.size(); at += kBlock)
    append_q8(values.subspan(at, kBlock), bytes);
}

void decode_gguf_values(GgufType type, std::string_view bytes, std::span<float> values) {
  const auto block = static_cast<size_t>(gguf_block_values(type));
  const auto stride = static_cast<size_t>(gguf_block_bytes(type));
  FB_CHECK(values.size() % block == 0 && bytes.size() == values.size() / block * stride,
           "{} bytes for {} values", bytes.size(), values.size());
  const char* from = bytes.data();
  for (size_t at = 0; at < values.size(); at += block, from += stride) {
    switch (type) {
      case GgufType::f32: std::memcpy(&values[at], from, 4); break;
      case GgufType::f16: values[at] = f16_to_f32(half_at(from)); break;
      case GgufType::bf16: values[at] = bf16_to_f32(half_at(from)); break;
      case GgufType::q8_0: {
        const float scale = f16_to_f32(half_at(from));
        for (size_t i = 0; i < kBlock; ++i)
          values[at + i] = static_cast<float>(static_cast<int8_t>(from[2 + i])) * scale;
        break;
      }
      case GgufType::q4_1: {
        // The low halves of the 16 bytes are the first 16 values, the high halves the others.
        const float scale = f16_to_f32(half_at(from));
        const float least = f16_to_f32(half_at(from + 2));
        for (size_t i = 0; i < kBlock / 2; ++i) {
          const auto pair = static_cast<unsigned char>(from[4 + i]);
          values[at + i] = static_cast<float>(pair & 15) * scale + least;
          values[at + i + kBlock / 2] = static_cast<float>(pair >> 4) * scale + least;
        }
        break;
      }
    }
  }
}

Result<GgufFile> GgufFile::open(const std::string& path, FileSystem& files) {
  Result<InputFile> opened = InputFile::open(path, files);
  if (!opened.ok()) return Failure{opened.error()};
  const InputFile& file = opened.value();
  // How long the header is, only its end says: more of the file until it is whole, or wrong in itself.
  const uint64_t most = std::min(file.bytes(), kMostGgufHeaderBytes);
  std::string bytes;
  for (uint64_t size = std::min<uint64_t>(most, kFirstBytes);; size = std::min(most, 8 * size)) {
    bytes.resize(size);
    if (const Status s = file.read_exactly(0, bytes.data(), bytes.size()); !s.ok())
      return Failure{s.error()};
    Result<GgufHeader> header = parse_gguf_header(bytes, file.bytes());
    if (header.ok()) return GgufFile(std::move(opened).value(), std::move(header).value());
    if (size == most) return Failure{fmt::format("{}: {}", path, header.error())};
  }
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = std::ranges::find(header_.tensors, name, &GgufTensor::name);
  return found == header_.tensors.end() ? nullptr : &*found;
}

Failure GgufFile::missing(std::string_view key, const char* expected) const {
  return {fmt::format("{}: the key '{}' {}; {} was expected", path(), key,
                      header_.metadata.contains(key) ? "has another type" : "is missing",
                      expected)};
}

Result<std::string> GgufFile::text(std::string_view key) const {
  const auto found = header_.metadata.find(key);
  const auto* const value =
      found == header_.metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (value == nullptr) return missing(key, "a text");
  return *value;
}

Result<uint64_t> GgufFile::whole(std::string_view key) const {
  const auto found = header_.metadata.find(key);
  if (found == header_.metadata.end()) return missing(key, "a whole number");
  if (const auto* const value = std::get_if<uint64_t>(&found->second)) return *value;
  const auto* const value = std::get_if<int64_t>(&found->second);
  if (value == nullptr || *value < 0) return missing(key, "a whole number");
  return static_cast<uint64_t>(*value);
}

Result<double> GgufFile::real(std::string_view key) const {
  const auto found = header_.metadata.find(key);
  const auto* const value =
      found == header_.metadata.end() ? nullptr : std::get_if<double>(&found->second);
  if (value == nullptr) return missing(key, "a number");
  return *value;
}

Status GgufFile::read(const GgufTensor& tensor, int64_t first, std::span<float> values) const {
  const int64_t block = gguf_block_values(tensor.type);
  const auto count = static_cast<int64_t>(values.size());
  FB_CHECK(first >= 0 && first % block == 0 && count % block == 0 &&
               first + count <= tensor.shape.elements(),
           "{} values of {} from {} on", count, tensor.name, first);
  const auto stride = static_cast<uint64_t>(gguf_block_bytes(tensor.type));
  const auto blocks = static_cast<uint64_t>(count / block);
  std::string bytes(blocks * stride, '\0');
  const uint64_t begin = tensor.begin + static_cast<uint64_t>(first / block) * stride;
  if (Status s = file_.read_exactly(begin, bytes.data(), bytes.size()); !s.ok()) return s;
  decode_gguf_values(tensor.type, bytes, values);
  return success();
}

Result<std::vector<float>> GgufFile::read(const GgufTensor& tensor) const {
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  if (const Status s = read(tensor, 0, values); !s.ok()) return Failure{s.error()};
  return values;
}

Status write_gguf(const std::string& path, const GgufMetadata& metadata,
                  std::span<const GgufSource> tensors, FileSystem& files) {
  GgufHeader header;
  header.metadata = metadata;
  for (const GgufSource& tensor : tensors) {
    const int64_t block = gguf_block_values(tensor.type);
    const int64_t values = tensor.shape.elements();
    FB_CHECK(values > 0 && tensor.shape[tensor.shape.rank() - 1] % block == 0, "{}", tensor.name);
    header.tensors.push_back(
        {tensor.name, tensor.shape, tensor.type, 0,
         static_cast<uint64_t>(values / block * gguf_block_bytes(tensor.type))});
  }
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  if (Status s = file.value().write(encode_gguf_header(header)); !s.ok()) return s;
  std::string bytes;
  for (const GgufSource& tensor : tensors) {
    const std::vector<float> values = tensor.read();
    FB_CHECK(static_cast<int64_t>(values.size()) == tensor.shape.elements(), "{}", tensor.name);
    bytes.clear();
    encode_gguf_values(tensor.type, values, bytes);
    bytes.resize((bytes.size() + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment);
    if (Status s = file.value().write(bytes); !s.ok()) return s;
  }
  return file.value().commit();
}

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/base/shape.h"

namespace fullbore {

/// The safetensors format: 8 bytes of header length (little endian), a JSON header padded with
/// spaces, then the tensors' bytes, row-major, little endian, without holes.
/// Source: https://github.com/huggingface/safetensors, section "Format" of its README.

/// Free texts by name: the header's "__metadata__".
using Metadata = std::map<std::string, std::string, std::less<>>;

/// A tensor in a file; [begin, end) is its place among the data, in bytes after the header.
struct StoredTensor {
  std::string name;
  TensorType type;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< in order of place
  Metadata metadata;
};

constexpr uint64_t kSafetensorsLengthBytes = 8;
/// The reference implementation's bound; a longer header is refused before it is read.
constexpr uint64_t kMostSafetensorsHeaderBytes = 100'000'000;

/// "F32"; every dtype has a name.
std::string_view safetensors_dtype(DType dtype);
std::optional<DType> parse_safetensors_dtype(std::string_view name);

/// What the data's place in a file is a multiple of, at least.
constexpr uint64_t kLeastSafetensorsAlignment = 8;

/// The JSON text, padded so that the data that follow the length and it start at a multiple of
/// `alignment`. Failure when a name or a text is not UTF-8.
Result<std::string> encode_safetensors_header(const SafetensorsHeader& header,
                                              uint64_t alignment = kLeastSafetensorsAlignment);

/// Checks everything that a header can get wrong: JSON, types of its fields, names met twice, dtypes,
/// shapes that disagree with their bytes, overlaps, holes, and the data's length. Failure tells the
/// byte of the file or the tensor and the reason; the caller adds the path.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_bytes);

}  // namespace fullbore

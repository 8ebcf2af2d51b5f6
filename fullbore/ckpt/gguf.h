#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/base/shape.h"

namespace fullbore {

/// The GGUF format, versions 2 and 3, little endian: magic, version, counts, metadata of typed values, the tensors' names,
/// shapes and places, padding, and the tensors' bytes.
/// Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.

/// How a tensor's values are stored; the numbers are the format's. Blocks are 32 neighbours of one row.
enum class GgufType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_1 = 3,  ///< a block: f16 d and m, 16 bytes of two 4-bit q each; value q d + m
  q8_0 = 8,  ///< a block: f16 d, 32 signed bytes q; value q d
  bf16 = 30,
};
constexpr int64_t kGgufBlock = 32;
/// "F32", "Q8_0": of known types, and of those of the format that are not read here; else "type 77".
std::string gguf_type_name(uint32_t type);
std::optional<GgufType> parse_gguf_type(std::string_view name);
/// Values that are stored together, 1 or kGgufBlock, and the bytes of them.
int64_t gguf_block_values(GgufType type);
int64_t gguf_block_bytes(GgufType type);

/// A value of the metadata. Whole numbers of any width are one of the first two, and so are lists of them; a list of lists
/// is checked and kept as nothing.
using GgufValue = std::variant<std::monostate, uint64_t, int64_t, double, bool, std::string,
                               std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>,
                               std::vector<bool>, std::vector<std::string>>;
using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

/// A tensor in a file. `shape` is row-major as everywhere here: the reverse of how the format lists it.
struct GgufTensor {
  std::string name;
  Shape shape;
  GgufType type = GgufType::f32;
  uint64_t begin = 0;  ///< in the file
  uint64_t bytes = 0;
};

struct GgufHeader {
  uint32_t version = 3;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  ///< as listed
};

/// Limits of what is believed, far above what there is.
constexpr uint64_t kMostGgufHeaderBytes = uint64_t{256} << 20;
constexpr uint64_t kMostGgufKeys = 65536;
constexpr uint64_t kMostGgufTensors = 65536;
constexpr uint64_t kMostGgufNameBytes = 256;
constexpr uint64_t kGgufAlignment = 32;  ///< unless general.alignment says otherwise

/// `bytes`: the file from its begin on, as far as the header goes at least; `file_bytes`: its length. Checks everything:
/// magic, version, counts, texts, types, names and keys met twice, shapes, ranges within the file, overlaps. Failure tells
/// the byte of the file, key or tensor, and the reason; the caller adds the path.
Result<GgufHeader> parse_gguf_header(std::string_view bytes, uint64_t file_bytes);

/// Header and padding, after which the tensors follow at multiples of the alignment. `begin` of each tensor is ignored;
/// order and `bytes` count.
std::string encode_gguf_header(const GgufHeader& header);

}  // namespace fullbore

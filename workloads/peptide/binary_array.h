#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::peptide {

/// How mzML has an array of numbers: how they are written, and what that is compressed with.
struct BinaryEncoding {
  enum class Numbers : uint8_t {
    plain,
    shuffled,
    dictionary,
    numpress_linear,
    numpress_integers,
    numpress_logarithms
  };
  enum class Compression : uint8_t { none, zlib, zstd };

  int bits = 0;  ///< 32 or 64, IEEE, little endian; MS-Numpress has no use for them
  Numbers numbers = Numbers::plain;
  Compression compression = Compression::none;

  bool is_numpress() const { return numbers >= Numbers::numpress_linear; }
};

/// Numbers of base64 text (white space is left out), at most `most` of them; else one clause that says
/// what is wrong. An empty text is an empty array in every encoding. `bytes` and `values` are overwritten.
std::optional<std::string> decode_binary_array(std::string_view text, BinaryEncoding encoding,
                                               size_t most, std::string& bytes,
                                               std::vector<double>& values);

}  // namespace fullbore::peptide

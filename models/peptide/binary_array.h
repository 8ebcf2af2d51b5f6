#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::peptide {

/// How mzML has an array of numbers.
struct BinaryEncoding {
  int bits = 0;  ///< 32 or 64, IEEE, little endian
  bool is_compressed = false;
};

/// Numbers of base64 text (white space is left out), at most `most` of them; else one clause that says
/// what is wrong. `bytes` and `values` are overwritten.
std::optional<std::string> decode_binary_array(std::string_view text, BinaryEncoding encoding,
                                               size_t most, std::string& bytes,
                                               std::vector<double>& values);

}  // namespace fullbore::peptide

#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::peptide {

// MS-Numpress: numbers rounded to integers of few half bytes. The first of a byte's halves is the upper one.
// An integer of 32 bits begins with a half byte h: h <= 8 stands for h leading zeros, h > 8 for h - 8 leading
// halves of ones; the others follow, lowest first. Source: Teleman et al. 2014, Mol. Cell. Proteomics 13,
// 1537.
//
// Each function overwrites `values` with at most `most` numbers, all finite, and never has room for more;
// else it returns one clause that says what is wrong.

/// x[i] / fixed point: 8 bytes of fixed point (IEEE, big endian), x[0] and x[1] of 32 bits without a sign
/// (little endian), then half-byte integers with a sign that are x[i] - (2 x[i-1] - x[i-2]). A lone fixed
/// point is no number, and one with x[0] alone is one.
std::optional<std::string> decode_numpress_linear(std::string_view bytes, size_t most,
                                                  std::vector<double>& values);

/// Half-byte integers without a sign.
std::optional<std::string> decode_numpress_integers(std::string_view bytes, size_t most,
                                                    std::vector<double>& values);

/// exp(x / fixed point) - 1: 8 bytes of fixed point (IEEE, big endian), then each x in 16 bits without a
/// sign (little endian).
std::optional<std::string> decode_numpress_logarithms(std::string_view bytes, size_t most,
                                                      std::vector<double>& values);

}  // namespace fullbore::peptide

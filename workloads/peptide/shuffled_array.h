#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fullbore::peptide {

// Arrays whose bytes are in an order that compresses better. "Shuffled": the first bytes of all elements,
// then all second bytes, and so on. Source: PSI-MS vocabulary, MS:1003781 and MS:1003782; the layout is that
// of their reference implementation, https://github.com/mobiusklein/mzd.cpp.

/// bytes: shuffled, a multiple of `width`. -> the elements one after the other.
std::string unshuffle(std::string_view bytes, size_t width);

/// A table of the distinct elements, and for each element its row: u64 offset of the rows, u64 n, n shuffled
/// elements of `width` bytes, shuffled rows (of 1 byte if n < 2^8, 2 if n < 2^16, else 4). `plain`: the
/// elements one after the other, at most `most`; else one clause that says what is wrong. Little endian.
std::optional<std::string> decode_dictionary(std::string_view bytes, size_t width, size_t most,
                                             std::string& plain);

}  // namespace fullbore::peptide

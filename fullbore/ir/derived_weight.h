#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// How a prepacked matrix [k, n] lies: in blocks of `columns` columns, `depth` elements of a column together (a VNNI
/// VNNI pair has 2). The attributes of prepack.
struct Packing {
  bool transposed = false;  ///< of the matrix [n, k]
  int64_t columns = 1;
  int64_t depth = 1;

  auto operator<=>(const Packing&) const = default;
};

/// A parameter in the form in which matmuls read it: in a low dtype, prepacked, or both. A graph reads it as an input of
/// role `derived`, which says so in this structure; the input's name is for people. In 8 bits (i8) it stands for the
/// parameter for good: an input of role `frozen`, and another one for its scales.
struct DerivedWeight {
  std::string parameter;                ///< State that it follows from
  std::optional<DType> dtype = {};      ///< that the parameter is cast to, if it is
  std::optional<Packing> packing = {};  ///< of that, if it is prepacked
  bool scales = false;  ///< of i8: not the numbers but what those of each row are multiplied by

  auto operator<=>(const DerivedWeight&) const = default;
  /// "head.weight as bf16 in blocks of 32 by 2, transposed": different for different ones.
  std::string name() const;
  bool in_8_bits() const { return dtype == DType::i8; }
};

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace fullbore::cpu {

/// y[r, c] = scale_r scale_c sum_i q_x[r, i] q_w[c, i], both contiguous along i.
struct Int8Tile {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const char* x = nullptr;  ///< rows as Int8Unit::quantize writes them
  const float* row_scales = nullptr;
  const int8_t* weight = nullptr;  ///< [columns, depth], in [-127, 127]
  const float* column_scales = nullptr;
  float* y = nullptr;
  int64_t y_row = 0;  ///< elements between rows
};

/// The loops of 8-bit matmuls for one kind of processor; all make the same bits. Sums are exact whatever the
/// operands: there is no instruction in them that saturates.
struct Int8Unit {
  std::string_view name;
  double operations_per_nanosecond =
      1;                      ///< roughly, of one core; a product and its addition are two
  int64_t element_bytes = 1;  ///< of an element of a rounded row
  int64_t step = 1;           ///< elements at once: rounded rows are padded to a multiple
  /// Added to every element of a rounded row. Unless 0, a row of nothing else follows behind the rows of a tile.
  int bias = 0;

  /// Rounds a row to 8 bits, padding included; returns its scale (base/quantize.h).
  float (*quantize)(const float* x, int64_t depth, char* q) = nullptr;
  void (*multiply)(const Int8Tile& tile) = nullptr;

  int64_t row_bytes(int64_t depth) const {
    return (depth + step - 1) / step * step * element_bytes;
  }
};

/// Those that this_processor() has, fastest first.
std::vector<const Int8Unit*> int8_units();

extern const Int8Unit kInt8Avx512Vnni;
extern const Int8Unit kInt8AvxVnni;
extern const Int8Unit kInt8Avx2;
extern const Int8Unit kInt8Baseline;

}  // namespace fullbore::cpu

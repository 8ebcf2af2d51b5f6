#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fullbore {

/// What the counts below are multiples of.
inline constexpr size_t kDrawLanes = 8;

/// Random draws by one kind of vector instructions. All kinds give the same bits: integer arithmetic,
/// and IEEE operations in one fixed order, without fused multiply-add and without the C library.
struct DrawUnit {
  std::string_view name;
  /// out[i] = philox_bits(key, position + i * step, stream), i < count.
  void (*bits)(uint64_t key, uint64_t stream, uint64_t position, uint64_t step, uint64_t* out,
               size_t count);
  /// All 128 bits in eighths, from the lowest on: out[8 i + e] = 1 if the number of 16 bits that is eighth e of
  /// philox_halves(key, position + i, stream) is at least `threshold`, else 0.
  void (*compare)(uint64_t key, uint64_t stream, uint64_t position, uint16_t threshold,
                  uint8_t* out, size_t count);
  /// Standard normals by Box and Muller 1958 from two lots of bits, of which the upper 53 count:
  /// out[i] = sqrt(-2 log(1 - u)) cos(2 pi v), u and v = (bits >> 11) / 2^53. Error: 1e-14.
  void (*normals)(const uint64_t* radius_bits, const uint64_t* angle_bits, double* out,
                  size_t count);
  /// out[i] = values[i] * factor + offset, computed in double and rounded once more.
  void (*floats)(const double* values, double factor, double offset, float* out, size_t count);
};

/// Those that this_processor() has, the fastest first.
std::span<const DrawUnit> draw_units();

}  // namespace fullbore

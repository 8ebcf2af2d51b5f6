#pragma once
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/cuda_kernel.h"

/// What makers of hand-written kernels share: launches of entries of fullbore/device/cuda/kernels, and their cost.
namespace fullbore::cuda {

/// A parameter: the address of an operand of the node (inputs, outputs, scratch).
inline Argument operand(size_t index) { return {.operand = static_cast<int>(index)}; }
/// A parameter by value, in the entry's own type.
template <class T>
Argument value(const T& number) {
  Argument argument;
  argument.bytes.resize(sizeof(T));
  std::memcpy(argument.bytes.data(), &number, sizeof(T));
  return argument;
}
/// A pointer parameter that points nowhere.
inline Argument null() { return value(uint64_t{0}); }

/// A launch of an entry of kernels/<file>.cpp. Its module has that entry alone, so that the driver compiles no other.
Launch launch(std::string_view file, const std::string& entry, Extent grid, Extent block,
              std::vector<Argument> arguments, int64_t dynamic_shared_bytes = 0);

/// Blocks and threads of kernels that work row by row (kernels/moves.cpp): x threads share a row of `width` parts, y rows
/// share a block.
struct RowLaunch {
  Extent grid, block;
  RowLaunch(int64_t rows, int64_t width);
};

/// How kernels/elements.h calls the dtype of indices.
int32_t index_kind(DType dtype);

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Of a kernel that is bound by so many bytes of memory, or so many flops: on one multiprocessor.
double memory_nanoseconds(const CardFacts& card, int64_t bytes);
double flop_nanoseconds(const CardFacts& card, double flops);
/// Bytes of all operands.
int64_t operand_bytes(const Request& request);

/// "gather f32[11,5], i32[2,3]".
std::string description_of(const Request& request);

/// One axis of a shape seen as [outer, extent, inner].
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(const Shape& shape, int64_t axis);
};

}  // namespace fullbore::cuda

#pragma once
#include "fullbore/ir/op_handle.h"

namespace fullbore {

struct ConvGeometry;

/// Output rows and columns of a tile.
inline constexpr int64_t kWinogradTile = 2;

/// Is it a convolution that `winograd_convolution` can make: 3 x 3 over two axes, without strides, dilations and zeros
/// between inputs?
bool is_winograd_convolution(const ConvGeometry& geometry);
/// Multiplications and additions of it: those of tiles, and of what is made of inputs and sums before and after.
double winograd_flops(const ConvGeometry& geometry);

namespace op {
/// See winograd_convolution.cpp.
inline const OpHandle winograd_convolution{"winograd_convolution"};
}  // namespace op

}  // namespace fullbore

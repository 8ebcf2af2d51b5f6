#pragma once
#include <string_view>
#include <vector>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// One spatial axis of a convolution: output p reads input (p * stride - before + k * dilation) / input_dilation for
/// each k of the kernel, where that divides and lies within the input. No geometry has both strides and input dilations.
struct ConvAxis {
  int64_t input = 1;
  int64_t kernel = 1;
  int64_t output = 1;
  int64_t stride = 1;
  int64_t before = 0;  ///< zeros before the input; a negative number crops
  int64_t dilation = 1;
  int64_t input_dilation = 1;  ///< 1 + the zeros between two elements of the input

  /// The input that output p reads with k, or -1 for a zero.
  int64_t read(int64_t p, int64_t k) const {
    const int64_t at = p * stride - before + k * dilation;
    if (at < 0 || at % input_dilation != 0 || at / input_dilation >= input) return -1;
    return at / input_dilation;
  }
};

/// What the two ops read of their operands and attributes: x [N,C,*S], weight [O,*K,C/groups], y [N,O,*P].
struct ConvGeometry {
  int64_t batch = 0;
  int64_t inputs = 0;   ///< channels of x
  int64_t outputs = 0;  ///< channels of y
  int64_t groups = 1;
  std::vector<ConvAxis> axes;

  int64_t group_inputs() const { return inputs / groups; }
  int64_t group_outputs() const { return outputs / groups; }
  int64_t kernel_elements() const;
  int64_t input_elements() const;   ///< of one channel of one image
  int64_t output_elements() const;  ///< likewise
  double flops() const;

  /// Of checked types: a convolution's x and weight, or a weight gradient's x and dy.
  static ConvGeometry of_convolution(const Shape& x, const Shape& weight,
                                     const Attributes& attributes);
  static ConvGeometry of_weight_gradient(const Shape& x, const Shape& dy,
                                         const Attributes& attributes);
};

/// Attribute `name`: a number for each of `axes` axes, each at least `least`.
const std::vector<int64_t>& require_axis_numbers(const OpCall& call, std::string_view name,
                                                 int axes, int64_t least);

/// weight [O,*K,C/groups] of a convolution as that of its transpose, [C,*K,O/groups], turned round along *K. Applied
/// twice it gives the weight back.
Tensor adjoint_weight(Tensor weight, int64_t groups);

/// A convolution whose weight lies as the op has it, [O,*K,C/groups], and whose result has the extents *P.
struct ConvNumbers {
  std::vector<int64_t> stride, before, dilation, input_dilation;
  int64_t groups = 1;
};
Tensor convolution_of_extents(Tensor x, Tensor weight, const ConvNumbers& numbers,
                              const std::vector<int64_t>& extents, SourceLoc loc);
/// The weight's gradient, [O,*K,C/groups] with kernel extents *K, of a convolution of x with result gradient dy.
/// Summed over the batch in as many parts as pay (see convolution_weight_gradient).
Tensor convolution_weight_sum(Tensor x, Tensor dy, const ConvNumbers& numbers,
                              const std::vector<int64_t>& kernel);

/// Calls visit(k, p, i) for each kernel element, output and input position of one channel that meet, by flat index.
template <class Visit>
void for_each_read(const ConvGeometry& g, const Visit& visit) {
  ConvAxis unit;
  const size_t rank = g.axes.size();
  const auto axis = [&](size_t i) -> const ConvAxis& {
    return i + rank >= 3 ? g.axes[i + rank - 3] : unit;
  };
  const ConvAxis &a = axis(0), &b = axis(1), &c = axis(2);
  for (int64_t ka = 0; ka < a.kernel; ++ka)
    for (int64_t kb = 0; kb < b.kernel; ++kb)
      for (int64_t kc = 0; kc < c.kernel; ++kc)
        for (int64_t pa = 0; pa < a.output; ++pa)
          for (int64_t pb = 0; pb < b.output; ++pb)
            for (int64_t pc = 0; pc < c.output; ++pc) {
              const int64_t ia = a.read(pa, ka), ib = b.read(pb, kb), ic = c.read(pc, kc);
              if (ia < 0 || ib < 0 || ic < 0) continue;
              visit((ka * b.kernel + kb) * c.kernel + kc, (pa * b.output + pb) * c.output + pc,
                    (ia * b.input + ib) * c.input + ic);
            }
}

}  // namespace fullbore

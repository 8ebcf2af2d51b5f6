// Convolutions and their weight's gradient, over one to three axes, each element of the result by its definition
// (ops/convolution.cpp): correct first. Sums are kept in f32, of f64 in f64, in one order.
#include "fullbore/device/cuda/kernels/elements.h"

namespace {

/// One spatial axis, as in ops/convolution_geometry.h.
struct Axis {
  int input, kernel, output, stride, before, dilation, input_dilation;

  /// The input that output p reads with k, or -1 for a zero.
  FB_DEVICE int read(int p, int k) const {
    const int at = p * stride - before + k * dilation;
    if (at < 0) return -1;
    const int input_at = at / input_dilation;
    return input_at * input_dilation != at || input_at >= input ? -1 : input_at;
  }
};
struct Geometry {
  int batch, inputs, outputs, groups;
  Axis axes[3];
};

// x [N,C,*S], weight [O,*K,C/groups] -> y [N,O,*P], T or f32. A thread an element, neighbours along P.
template <class T>
FB_DEVICE void convolution(const T* x, const T* weight, void* y, const Geometry& g, bool is_wide) {
  const Axis &a = g.axes[0], &b = g.axes[1], &c = g.axes[2];
  const int input = a.input * b.input * c.input, output = a.output * b.output * c.output;
  const int inner = g.inputs / g.groups;
  const int o = block_y();
  const T* const row = weight + static_cast<long>(o) * a.kernel * b.kernel * c.kernel * inner;
  const int first = o / (g.outputs / g.groups) * inner;
  const int p = block_x() * threads() + thread();
  if (p >= output) return;
  const int pa = p / (b.output * c.output), pb = p / c.output % b.output, pc = p % c.output;
  for (int n = block_z(); n < g.batch; n += blocks_z()) {
    const T* const image = x + (static_cast<long>(n) * g.inputs + first) * input;
    Sum<T> sum = 0;
    const T* factors = row;
    for (int ka = 0; ka < a.kernel; ++ka)
      for (int kb = 0; kb < b.kernel; ++kb)
        for (int kc = 0; kc < c.kernel; ++kc, factors += inner) {
          const int ia = a.read(pa, ka), ib = b.read(pb, kb), ic = c.read(pc, kc);
          if (ia < 0 || ib < 0 || ic < 0) continue;
          const T* const at = image + (static_cast<long>(ia) * b.input + ib) * c.input + ic;
          for (int channel = 0; channel < inner; ++channel)
            sum += load(factors[channel]) * load(at[static_cast<long>(channel) * input]);
        }
    const long at = (static_cast<long>(n) * g.outputs + o) * output + p;
    if (is_wide)
      static_cast<Sum<T>*>(y)[at] = sum;
    else
      store(static_cast<T*>(y) + at, sum);
  }
}

// x [N,C,*S], dy [N,O,*P] -> [parts,O,*K,C/groups], T or f32: sums over `images` images each. A warp an element, its
// lanes neighbours along P, their sums combined in a tree.
template <class T>
FB_DEVICE void weight_gradient(const T* x, const T* dy, void* dweight, const Geometry& g, int parts,
                               int images, bool is_wide) {
  const Axis &a = g.axes[0], &b = g.axes[1], &c = g.axes[2];
  const int input = a.input * b.input * c.input, output = a.output * b.output * c.output;
  const int kernel = a.kernel * b.kernel * c.kernel;
  const int inner = g.inputs / g.groups;
  const long elements = static_cast<long>(parts) * g.outputs * kernel * inner;
  const int lane = thread() % kWarp;
  const long step = static_cast<long>(blocks_x()) * (threads() / kWarp);
  for (long e = static_cast<long>(block_x()) * (threads() / kWarp) + thread() / kWarp; e < elements;
       e += step) {
    const int channel = static_cast<int>(e % inner), k = static_cast<int>(e / inner % kernel);
    const int o = static_cast<int>(e / inner / kernel % g.outputs);
    const int part = static_cast<int>(e / inner / kernel / g.outputs);
    const int ka = k / (b.kernel * c.kernel), kb = k / c.kernel % b.kernel, kc = k % c.kernel;
    const int from = o / (g.outputs / g.groups) * inner + channel;
    Sum<T> sum = 0;
    for (int n = part * images; n < least(g.batch, (part + 1) * images); ++n) {
      const T* const image = x + (static_cast<long>(n) * g.inputs + from) * input;
      const T* const slope = dy + (static_cast<long>(n) * g.outputs + o) * output;
      for (int p = lane; p < output; p += kWarp) {
        const int ia = a.read(p / (b.output * c.output), ka);
        const int ib = b.read(p / c.output % b.output, kb), ic = c.read(p % c.output, kc);
        if (ia < 0 || ib < 0 || ic < 0) continue;
        sum += load(slope[p]) * load(image[(static_cast<long>(ia) * b.input + ib) * c.input + ic]);
      }
    }
    for (int mask = kWarp / 2; mask > 0; mask /= 2) sum += from_lane_xor(sum, mask);
    if (lane != 0) continue;
    if (is_wide)
      static_cast<Sum<T>*>(dweight)[e] = sum;
    else
      store(static_cast<T*>(dweight) + e, sum);
  }
}

}  // namespace

#define FB_CONVOLUTION(T, SUFFIX)                                                               \
  FB_KERNEL void convolution_##SUFFIX(const T* x, const T* weight, void* y, Geometry g,         \
                                      int is_wide) {                                            \
    convolution(x, weight, y, g, is_wide != 0);                                                 \
  }                                                                                             \
  FB_KERNEL void convolution_weight_gradient_##SUFFIX(                                          \
      const T* x, const T* dy, void* dweight, Geometry g, int parts, int images, int is_wide) { \
    weight_gradient(x, dy, dweight, g, parts, images, is_wide != 0);                            \
  }
FB_CONVOLUTION(double, f64)
FB_CONVOLUTION(float, f32)
FB_CONVOLUTION(Bf16, bf16)
FB_CONVOLUTION(F16, f16)

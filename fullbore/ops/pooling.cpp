#include "fullbore/ops/pooling.h"

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

/// Pooling by means, adaptive pooling and resampling: compositions, axis by axis where that is the same.
namespace fullbore {
namespace {

using Numbers = std::vector<int64_t>;

struct CallerCheck {
  const char* op;
  SourceLoc loc;

  [[noreturn]] void fail(const std::string& message) const {
    throw UsageError(fmt::format("{}: {}", op, message), loc);
  }
  /// The spatial axes of x, none of which is empty.
  int rank(Tensor x) const {
    require_tensor(op, "x", x, loc);
    const int rank = x.rank() - 2;
    if (rank < 1 || rank > 3)
      fail("needs x [N,C,*S] with one to three spatial axes, got " + x.type().text());
    if (!is_floating(x.dtype())) fail("needs floating x, got " + x.type().text());
    for (int axis = 2; axis < x.rank(); ++axis)
      if (x.dim(axis) == 0) fail(fmt::format("axis {} of {} is empty", axis, x.type().text()));
    return rank;
  }
  Numbers each(const PerAxis& numbers, const char* name, int axes, int64_t least) const {
    return each_axis(op, numbers, name, axes, least, loc);
  }
};

/// Windows of an axis: window i begins at i * stride.
struct AxisWindows {
  int64_t kernel, stride, output;
};

// Sums of the windows of one axis, side by side or overlapping.
Tensor window_sums(Tensor x, int axis, const AxisWindows& w, SourceLoc loc) {
  if (w.stride == w.kernel) {
    const Tensor used = slice(x, axis, 0, w.output * w.kernel, 1, loc);
    const Shape shape = x.shape().with(axis, w.output).inserted(axis + 1, w.kernel);
    return reduce_sum(reshape(used, shape, loc), {axis + 1}, false, loc);
  }
  Tensor sum;
  for (int64_t k = 0; k < w.kernel; ++k) {
    const Tensor term = slice(x, axis, k, k + (w.output - 1) * w.stride + 1, w.stride, loc);
    sum = sum.valid() ? add({sum, loc}, {term, loc}) : term;
  }
  return sum;
}

// 1 / elements within x of each window of an axis, for broadcasting.
Tensor reciprocal_counts(Tensor x, int axis, int64_t extent, int64_t padding,
                         const AxisWindows& w) {
  std::vector<double> counts;
  for (int64_t i = 0; i < w.output; ++i) {
    const int64_t begin = std::max<int64_t>(0, i * w.stride - padding);
    const int64_t end = std::min(extent, i * w.stride - padding + w.kernel);
    counts.push_back(1 / static_cast<double>(end - begin));
  }
  Numbers shape(static_cast<size_t>(x.rank() - axis), 1);
  shape[0] = w.output;
  return constant(x.builder(), {x.dtype(), Shape(shape)}, std::move(counts));
}

Tensor adaptive(const char* op, Tensor x, const PerAxis& output, bool mean, SourceLoc loc) {
  const CallerCheck check{op, loc};
  const int rank = check.rank(x);
  const Numbers outputs = check.each(output, "output", rank, 1);
  const auto reduce = [&](Tensor part, std::vector<int64_t> axes, bool keep) {
    return mean ? reduce_mean(part, std::move(axes), keep, loc)
                : reduce_max(part, std::move(axes), keep, loc);
  };
  for (int i = 0; i < rank; ++i) {
    const int axis = i + 2;
    const int64_t extent = x.dim(axis), parts = outputs[static_cast<size_t>(i)];
    if (parts == extent) continue;
    if (extent % parts == 0) {
      const Shape shape = x.shape().with(axis, parts).inserted(axis + 1, extent / parts);
      x = reduce(reshape(x, shape, loc), {axis + 1}, false);
      continue;
    }
    std::vector<Tensor> results;
    for (int64_t part = 0; part < parts; ++part)
      results.push_back(reduce(
          slice(x, axis, part * extent / parts, ((part + 1) * extent + parts - 1) / parts, 1, loc),
          {axis}, true));
    x = concat(results, axis, loc);
  }
  return x;
}

}  // namespace

Tensor average_pool(Tensor x, const AveragePoolOptions& options, SourceLoc loc) {
  const CallerCheck check{"average_pool", loc};
  const int rank = check.rank(x);
  const Numbers kernel = check.each(options.kernel, "kernel", rank, 1);
  const Numbers stride =
      options.stride.values.empty() ? kernel : check.each(options.stride, "stride", rank, 1);
  const Numbers padding = check.each(options.padding, "padding", rank, 0);
  Tensor y = cast(x, compute_dtype(x.dtype()), loc);
  double elements = 1;
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const int axis = i + 2;
    const int64_t room = x.dim(axis) + 2 * padding[at] - kernel[at];
    if (padding[at] > kernel[at] / 2)
      check.fail(fmt::format("padding {} is more than half of kernel {}", padding[at], kernel[at]));
    if (room < 0)
      check.fail(fmt::format("kernel {} is larger than axis {} of {} with its padding", kernel[at],
                             axis, operand_text("x", x.type())));
    const AxisWindows windows{kernel[at], stride[at], room / stride[at] + 1};
    if (padding[at] > 0) y = pad(y, axis, padding[at], padding[at], 0, loc);
    y = window_sums(y, axis, windows, loc);
    if (options.count_padding || padding[at] == 0)
      elements *= static_cast<double>(kernel[at]);
    else
      y = mul({y, loc}, {reciprocal_counts(y, axis, x.dim(axis), padding[at], windows), loc});
  }
  return cast(mul({y, loc}, {1 / elements, loc}), x.dtype(), loc);
}

Tensor adaptive_average_pool(Tensor x, const PerAxis& output, SourceLoc loc) {
  return adaptive("adaptive_average_pool", x, output, true, loc);
}

Tensor adaptive_max_pool(Tensor x, const PerAxis& output, SourceLoc loc) {
  return adaptive("adaptive_max_pool", x, output, false, loc);
}

Tensor upsample_nearest(Tensor x, const PerAxis& extents, SourceLoc loc) {
  const CallerCheck check{"upsample_nearest", loc};
  const int rank = check.rank(x);
  const Numbers outputs = check.each(extents, "extents", rank, 1);
  for (int axis = 2; axis < rank + 2; ++axis) {
    const int64_t extent = x.dim(axis), output = outputs[static_cast<size_t>(axis) - 2];
    if (output == extent) continue;
    const Shape shape = x.shape().with(axis, output);
    if (output % extent == 0) {
      const Shape repeated = x.shape().inserted(axis + 1, output / extent);
      x = reshape(broadcast_to(expand_dims(x, axis + 1, loc), repeated, loc), shape, loc);
      continue;
    }
    std::vector<double> places;
    for (int64_t i = 0; i < output; ++i) {
      const int64_t place = i * extent / output;
      places.push_back(static_cast<double>(place));
    }
    Numbers along(static_cast<size_t>(x.rank() - axis), 1);
    along[0] = output;
    const Tensor indices = constant(x.builder(), {DType::i32, Shape(along)}, places, loc);
    x = take_along_axis(x, broadcast_to(indices, shape, loc), axis, loc);
  }
  return x;
}

Tensor upsample_linear(Tensor x, const PerAxis& extents, bool align_corners, SourceLoc loc) {
  const CallerCheck check{"upsample_linear", loc};
  const int rank = check.rank(x);
  const Numbers outputs = check.each(extents, "extents", rank, 1);
  const DType compute = compute_dtype(x.dtype());
  for (int i = 0; i < rank; ++i) {
    const int axis = i + 2;
    const int64_t extent = x.dim(axis), output = outputs[static_cast<size_t>(i)];
    if (output == extent) continue;
    // weights[s, i] = max(0, 1 - |place(i) - s|)
    const TensorType weights{compute, {extent, output}};
    const double scale = !align_corners ? static_cast<double>(extent) / static_cast<double>(output)
                         : output > 1
                             ? static_cast<double>(extent - 1) / static_cast<double>(output - 1)
                             : 0;
    const double shift = align_corners ? 0 : 0.5 * scale - 0.5;
    const Tensor place = clamp(iota(x.builder(), weights, 1, loc) * scale + shift, 0,
                               static_cast<double>(extent - 1), loc);
    const Tensor weight = relu(1.0 - abs(place - iota(x.builder(), weights, 0, loc), loc), loc);
    const Tensor last = axis == x.rank() - 1 ? x : swap_axes(x, axis, -1, loc);
    const int64_t rows = last.type().elements() / extent;
    const Tensor y =
        matmul(reshape(last, {rows, extent}, loc), cast(weight, x.dtype(), loc), {}, loc);
    const Tensor made = reshape(y, last.shape().with(last.rank() - 1, output), loc);
    x = axis == x.rank() - 1 ? made : swap_axes(made, axis, -1, loc);
  }
  return x;
}

}  // namespace fullbore

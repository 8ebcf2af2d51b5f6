#include "fullbore/ops/selection.h"

#include <array>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

/// Compositions by size, statistics and padding.
namespace fullbore {
namespace {

[[noreturn]] void fail(const char* op, const std::string& message, SourceLoc loc) {
  throw UsageError(fmt::format("{}: {}", op, message), loc);
}

int checked_axis(const char* op, Tensor x, int64_t axis, SourceLoc loc) {
  const int64_t normal = normal_axis(axis, x.rank());
  if (normal < 0 || normal >= x.rank())
    fail(op,
         fmt::format("axis {} out of range [{}, {}] for {}", axis, -x.rank(), x.rank() - 1,
                     operand_text("x", x.type())),
         loc);
  return static_cast<int>(normal);
}

Tensor is_true(Tensor x, SourceLoc loc) {
  return x.dtype() == DType::boolean ? x : not_equal({x, loc}, {0.0, loc});
}

}  // namespace

std::tuple<Tensor, Tensor> topk(Tensor x, int64_t k, bool largest, SourceLoc loc) {
  require_tensor("topk", "x", x, loc);
  if (x.rank() < 1 || k < 0 || k > x.dim(-1))
    fail("topk", fmt::format("{} of {}", k, operand_text("x", x.type())), loc);
  const auto [values, indices] = sort(x, largest, loc);
  if (k == x.dim(-1)) return {values, indices};
  return {slice(values, -1, 0, k, 1, loc), slice(indices, -1, 0, k, 1, loc)};
}

Tensor argmin(Tensor x, int axis, SourceLoc loc) {
  require_tensor("argmin", "x", x, loc);
  // The complement turns the order of integers round, the lowest too.
  if (is_integer(x.dtype()))
    return argmax(bit_xor({x, loc}, {x.dtype() == DType::u8 ? 255.0 : -1.0, loc}), axis, loc);
  return argmax(neg(x, loc), axis, loc);
}

Tensor variance(Tensor x, std::vector<int64_t> axes, int64_t correction, bool keep_dims,
                SourceLoc loc) {
  require_tensor("variance", "x", x, loc);
  if (!is_floating(x.dtype())) fail("variance", "needs floating x, got " + x.type().text(), loc);
  int64_t count = 1;
  for (int64_t& axis : axes) {
    axis = checked_axis("variance", x, axis, loc);
    count *= x.dim(static_cast<int>(axis));
  }
  if (count <= correction || correction < 0)
    fail("variance",
         fmt::format("{} elements of {} and correction {} leave nothing to divide by", count,
                     operand_text("x", x.type()), correction),
         loc);
  const Tensor wide = cast(x, compute_dtype(x.dtype()), loc);
  const Tensor deviations = sub({wide, loc}, {reduce_mean(wide, axes, true, loc), loc});
  const Tensor sum = reduce_sum(mul({deviations, loc}, {deviations, loc}), axes, keep_dims, loc);
  return cast(div({sum, loc}, {static_cast<double>(count - correction), loc}), x.dtype(), loc);
}

Tensor standard_deviation(Tensor x, std::vector<int64_t> axes, int64_t correction, bool keep_dims,
                          SourceLoc loc) {
  return sqrt(variance(x, std::move(axes), correction, keep_dims, loc), loc);
}

Tensor any(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  require_tensor("any", "x", x, loc);
  const Tensor count =
      reduce_sum(cast(is_true(x, loc), DType::i64, loc), std::move(axes), keep_dims, loc);
  return not_equal({count, loc}, {0.0, loc});
}

Tensor all(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  require_tensor("all", "x", x, loc);
  return logical_not(any(logical_not(is_true(x, loc), loc), std::move(axes), keep_dims, loc), loc);
}

Tensor pad_by(Tensor x, int axis, int64_t before, int64_t after, PadMode mode, SourceLoc loc) {
  require_tensor("pad_by", "x", x, loc);
  axis = checked_axis("pad_by", x, axis, loc);
  const int64_t extent = x.dim(axis);
  const int64_t most = mode == PadMode::reflect ? extent - 1 : extent;
  const bool fits = mode == PadMode::replicate ? extent > 0 : before <= most && after <= most;
  if (before < 0 || after < 0 || (before + after > 0 && !fits))
    fail("pad_by",
         fmt::format("widths {} and {} do not suit the {} of axis {} of {}", before, after, extent,
                     axis, operand_text("x", x.type())),
         loc);
  const auto part = [&](int64_t begin, int64_t end) { return slice(x, axis, begin, end, 1, loc); };
  const auto repeated = [&](int64_t at, int64_t count) {
    return broadcast_to(part(at, at + 1), x.shape().with(axis, count), loc);
  };
  std::vector<Tensor> parts;
  if (before > 0)
    parts.push_back(mode == PadMode::reflect     ? reverse(part(1, before + 1), axis, loc)
                    : mode == PadMode::replicate ? repeated(0, before)
                                                 : part(extent - before, extent));
  parts.push_back(x);
  if (after > 0)
    parts.push_back(mode == PadMode::reflect
                        ? reverse(part(extent - 1 - after, extent - 1), axis, loc)
                    : mode == PadMode::replicate ? repeated(extent - 1, after)
                                                 : part(0, after));
  return parts.size() == 1 ? x : concat(parts, axis, loc);
}

}  // namespace fullbore

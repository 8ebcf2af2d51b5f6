#pragma once
#include <span>
#include <tuple>

#include "fullbore/ir/op_handle.h"
#include "fullbore/ops/ops.h"

/// Elements chosen by size or by index, and sums over them, beyond ops.h. Axes may be negative. As there, an index out of
/// [0, extent) reads zero and writes nothing.
namespace fullbore {

namespace op {
inline const OpHandle scatter_max{"scatter_max"};
}  // namespace op

/// The k largest (or smallest) elements along the last axis, in order, and their indices (i32): x [..., C] -> [..., k] each.
/// NaN counts as the largest. By a stable sort. Differentiable in x.
std::tuple<Tensor, Tensor> topk(Tensor x, int64_t k, bool largest = true,
                                SourceLoc loc = SourceLoc::here());
/// Index (i32) of the smallest element along the axis, the lowest on ties.
Tensor argmin(Tensor x, int axis, SourceLoc loc = SourceLoc::here());

/// Mean square of the deviations from the mean along `axes`, sums divided by count - correction; and its root. In f32 or
/// better. UsageError where there are no more elements than `correction`.
Tensor variance(Tensor x, std::vector<int64_t> axes, int64_t correction = 1, bool keep_dims = false,
                SourceLoc loc = SourceLoc::here());
Tensor standard_deviation(Tensor x, std::vector<int64_t> axes, int64_t correction = 1,
                          bool keep_dims = false, SourceLoc loc = SourceLoc::here());

/// Is any (are all) of the truth values true? bool -> bool; numbers count as true unless 0.
Tensor any(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
           SourceLoc loc = SourceLoc::here());
Tensor all(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
           SourceLoc loc = SourceLoc::here());

/// Elements by as many indices as one gives for the first axes: x [A,B,...], indices broadcast to I -> [I,...].
/// y[i] = x[first[i], second[i], ...]
Tensor index(Tensor x, std::span<const Tensor> indices, SourceLoc loc = SourceLoc::here());
/// x with those elements replaced by `values` [I,...], the last of several for one place, or added to them.
Tensor index_put(Tensor x, std::span<const Tensor> indices, Tensor values, bool accumulate = false,
                 SourceLoc loc = SourceLoc::here());

/// What becomes of several values for one place.
enum class ScatterReduce : uint8_t { replace, sum, mean, max, min };
/// x with values by index along one axis: y[..., indices[..., i, ...], ...] = of x there and updates[..., i, ...]
///
/// x        [...]       numbers; floating for mean
/// updates  [..., I, ...] of x's dtype: x's extents but along the axis
/// indices  as updates, integer
/// replace: the last update. sum, mean, max, min: of x's element and all updates. Equal extrema share the cotangent.
Tensor scatter(Tensor x, Tensor updates, Tensor indices, int axis,
               ScatterReduce reduce = ScatterReduce::replace, SourceLoc loc = SourceLoc::here());

enum class BagMode : uint8_t { sum, mean, max };
/// Rows of a table reduced bag by bag: table [N,C], indices [...,M] integer -> [...,C]. Indices out of [0, N) (-1, say) pad
/// bags and count for nothing; an empty bag is 0. weights [...,M] (with sum alone): a factor of each row.
Tensor embedding_bag(Tensor table, Tensor indices, BagMode mode = BagMode::sum, Tensor weights = {},
                     SourceLoc loc = SourceLoc::here());

/// What stands before and after an axis.
enum class PadMode : uint8_t {
  reflect,    ///< c b [a b c] b a: the edge once; widths less than the extent
  replicate,  ///< a a [a b c] c c
  circular    ///< b c [a b c] a b; widths at most the extent
};
Tensor pad_by(Tensor x, int axis, int64_t before, int64_t after, PadMode mode,
              SourceLoc loc = SourceLoc::here());

}  // namespace fullbore

#include <array>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/selection.h"
#include "fullbore/ops/update_rows.h"

/// Indexing with several indices, scatter, bags of embeddings: compositions of gather, update_rows and the sums by index.
namespace fullbore {
namespace {

[[noreturn]] void fail(const char* op, const std::string& message, SourceLoc loc) {
  throw UsageError(fmt::format("{}: {}", op, message), loc);
}

// The indices as one into the product of the axes' extents; -1 where any is out of its range.
Tensor flat_indices(const char* op, Tensor x, std::span<const Tensor> indices, SourceLoc loc) {
  if (indices.empty() || static_cast<int>(indices.size()) > x.rank())
    fail(op, fmt::format("{} indices for {}", indices.size(), operand_text("x", x.type())), loc);
  Tensor flat, inside;
  for (size_t i = 0; i < indices.size(); ++i) {
    require_tensor(op, "an index", indices[i], loc);
    if (!is_integer(indices[i].dtype()))
      fail(op, "needs integer indices, got " + indices[i].type().text(), loc);
    const Tensor index = cast(indices[i], DType::i64, loc);
    const auto extent = static_cast<double>(x.dim(static_cast<int>(i)));
    const Tensor fits = logical_and({greater_equal({index, loc}, {0.0, loc}), loc},
                                    {less({index, loc}, {extent, loc}), loc});
    flat = flat.valid() ? add({mul({flat, loc}, {extent, loc}), loc}, {index, loc}) : index;
    inside = inside.valid() ? logical_and({inside, loc}, {fits, loc}) : fits;
  }
  return select(inside, {flat, loc}, {-1.0, loc});
}

// x with its first `count` axes as one.
Tensor joined(Tensor x, size_t count, SourceLoc loc) {
  const int axes = static_cast<int>(count);
  const Shape rest = x.shape().slice(axes, x.rank());
  return reshape(x, rest.inserted(0, x.shape().slice(0, axes).elements()), loc);
}

void check_scatter(Tensor x, Tensor updates, Tensor indices, int axis, SourceLoc loc) {
  require_tensor("scatter", "x", x, loc);
  require_tensor("scatter", "updates", updates, loc);
  require_tensor("scatter", "indices", indices, loc);
  if (axis < 0 || axis >= x.rank())
    fail("scatter", "axis out of range for " + operand_text("x", x.type()), loc);
  if (!is_integer(indices.dtype()) || indices.shape() != updates.shape())
    fail("scatter",
         fmt::format("needs integer indices {} as updates, got {}", updates.shape().text(),
                     indices.type().text()),
         loc);
  if (updates.rank() != x.rank() || updates.dtype() != x.dtype() ||
      updates.shape().with(axis, 0) != x.shape().with(axis, 0))
    fail("scatter",
         fmt::format("updates {} do not fit {} along axis {}", updates.type().text(),
                     operand_text("x", x.type()), axis),
         loc);
}

// The last update of each place, by rows of one element.
Tensor replaced(Tensor x, Tensor updates, Tensor indices, int axis, SourceLoc loc) {
  const TensorType places{DType::i64, updates.shape()};
  std::vector<Tensor> all;
  for (int i = 0; i < x.rank(); ++i)
    all.push_back(i == axis ? indices : iota(x.builder(), places, i, loc));
  return index_put(x, all, updates, false, loc);
}

Tensor negated_min(Tensor x, Tensor updates, Tensor indices, int axis, SourceLoc loc) {
  const auto turned = [&](Tensor t) {
    return is_floating(t.dtype()) ? neg(t, loc)
                                  : bit_xor({t, loc}, {t.dtype() == DType::u8 ? 255.0 : -1.0, loc});
  };
  return turned(
      apply("scatter_max", {turned(x), turned(updates), indices}, {{"axis", int64_t{axis}}}, loc));
}

Tensor mean_of(Tensor x, Tensor updates, Tensor indices, int axis, SourceLoc loc) {
  if (!is_floating(x.dtype()))
    fail("scatter", "a mean needs floating x, got " + x.type().text(), loc);
  const DType compute = compute_dtype(x.dtype());
  const auto sums = [&](Tensor terms) {
    return scatter_along_axis(terms, indices, axis, x.dim(axis), loc);
  };
  const Tensor total = add({cast(x, compute, loc), loc}, {sums(cast(updates, compute, loc)), loc});
  const Tensor count = sums(full(x.builder(), {compute, updates.shape()}, 1, loc));
  return cast(div({total, loc}, {add({count, loc}, {1.0, loc}), loc}), x.dtype(), loc);
}

}  // namespace

Tensor index(Tensor x, std::span<const Tensor> indices, SourceLoc loc) {
  require_tensor("index", "x", x, loc);
  return gather(
      joined(x, indices.size() <= static_cast<size_t>(x.rank()) ? indices.size() : 0, loc),
      flat_indices("index", x, indices, loc), loc);
}

Tensor index_put(Tensor x, std::span<const Tensor> indices, Tensor values, bool accumulate,
                 SourceLoc loc) {
  require_tensor("index_put", "x", x, loc);
  require_tensor("index_put", "values", values, loc);
  const Tensor flat = flat_indices("index_put", x, indices, loc);
  const Tensor rows = joined(x, indices.size(), loc);
  if (!accumulate) return reshape(update_rows(rows, values, flat, loc), x.shape(), loc);
  const Tensor sums = scatter_add(values, flat, rows.dim(0), loc);
  return add({x, loc}, {reshape(sums, x.shape(), loc), loc});
}

Tensor scatter(Tensor x, Tensor updates, Tensor indices, int axis, ScatterReduce reduce,
               SourceLoc loc) {
  if (x.valid()) axis = static_cast<int>(normal_axis(axis, x.rank()));
  check_scatter(x, updates, indices, axis, loc);
  switch (reduce) {
    case ScatterReduce::replace: return replaced(x, updates, indices, axis, loc);
    case ScatterReduce::sum:
      return add({x, loc}, {scatter_along_axis(updates, indices, axis, x.dim(axis), loc), loc});
    case ScatterReduce::mean: return mean_of(x, updates, indices, axis, loc);
    case ScatterReduce::max:
      return apply("scatter_max", {x, updates, indices}, {{"axis", int64_t{axis}}}, loc);
    case ScatterReduce::min: break;
  }
  return negated_min(x, updates, indices, axis, loc);
}

Tensor embedding_bag(Tensor table, Tensor indices, BagMode mode, Tensor weights, SourceLoc loc) {
  constexpr const char* kOp = "embedding_bag";
  require_tensor(kOp, "table", table, loc);
  require_tensor(kOp, "indices", indices, loc);
  if (table.rank() != 2 || !is_floating(table.dtype()))
    fail(kOp, "needs a floating table [N,C], got " + table.type().text(), loc);
  if (indices.rank() < 1 || !is_integer(indices.dtype()))
    fail(kOp, "needs integer indices [...,M], got " + indices.type().text(), loc);
  if (weights.valid() && (mode != BagMode::sum || weights.shape() != indices.shape()))
    fail(kOp,
         fmt::format("weights {} go with sums of indices {}", weights.type().text(),
                     indices.type().text()),
         loc);
  const DType compute = compute_dtype(table.dtype());
  const int axis = indices.rank() - 1;  // of the bag
  const Tensor rows = cast(gather(table, indices, loc), compute, loc);
  const Tensor there = logical_and(
      {greater_equal({indices, loc}, {0.0, loc}), loc},
      {less({cast(indices, DType::i64, loc), loc}, {static_cast<double>(table.dim(0)), loc}), loc});
  const auto beside = [&](Tensor t) { return expand_dims(t, axis + 1, loc); };
  Tensor result;
  if (mode == BagMode::max) {
    const Tensor shown = broadcast_to(beside(there), rows.shape(), loc);
    const Tensor largest =
        reduce_max(select(shown, {rows, loc}, {-HUGE_VAL, loc}), {axis}, false, loc);
    const Tensor some =
        broadcast_to(expand_dims(any(there, {axis}, false, loc), axis, loc), largest.shape(), loc);
    result = select(some, {largest, loc}, {0.0, loc});
  } else {
    const Tensor factors = weights.valid() ? beside(cast(weights, compute, loc)) : Tensor();
    result =
        reduce_sum(factors.valid() ? mul({rows, loc}, {factors, loc}) : rows, {axis}, false, loc);
    if (mode == BagMode::mean) {
      const Tensor count = reduce_sum(cast(there, compute, loc), {axis}, false, loc);
      result = div({result, loc}, {expand_dims(maximum({count, loc}, {1.0, loc}), axis, loc), loc});
    }
  }
  return cast(result, table.dtype(), loc);
}

}  // namespace fullbore

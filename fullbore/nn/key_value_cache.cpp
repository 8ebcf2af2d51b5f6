#include "fullbore/nn/key_value_cache.h"

#include <fmt/format.h>

#include <string>

#include "fullbore/base/error.h"
#include "fullbore/ops/ops.h"

namespace fullbore::nn {
namespace {

// Query t is at place queries + t.
Tensor within_window(Tensor places, Tensor queries, int64_t window) {
  return greater(places, queries - static_cast<double>(window));
}

}  // namespace

Tensor extend_cache(Trace& trace, const char* name, Tensor rows, const CacheOptions& options,
                    SourceLoc loc) {
  const TensorType type{rows.dtype(), rows.shape().with(2, options.capacity)};
  const Tensor cache = trace.state(trace.builder().scope() + ".cache." + name, Role::recurrent,
                                   type, Initializer::zeros(), loc);
  const Tensor before = options.rows.valid() ? gather(cache, options.rows, loc) : cache;
  const Tensor extended = dynamic_update_slice(before, rows, options.position, 2, loc);
  trace.update(cache, extended);
  return extended;
}

Tensor visible_places(int64_t length, const CacheOptions& options, int64_t window) {
  const TensorType type{DType::i64, {1, 1, length, options.capacity}};
  GraphBuilder& builder = options.position.builder();
  const Tensor places = iota(builder, type, 3);
  const Tensor queries = iota(builder, type, 2) + options.position;
  const Tensor earlier = less_equal(places, queries);
  return window == 0 ? earlier : logical_and(earlier, within_window(places, queries, window));
}

Tensor visible_window(GraphBuilder& builder, int64_t length, int64_t window) {
  const TensorType type{DType::i64, {1, 1, length, length}};
  const Tensor places = iota(builder, type, 3), queries = iota(builder, type, 2);
  return logical_and(less_equal(places, queries), within_window(places, queries, window));
}

Tensor places_between(Tensor first, Tensor end, int64_t places, SourceLoc loc) {
  const auto column = [&](Tensor x, const char* name) {
    if (x.rank() != 1)
      throw UsageError(fmt::format("places_between: needs {} [B], got {}", name, x.type().text()),
                       loc);
    return reshape(x, {x.dim(0), 1, 1, 1}, loc);
  };
  const auto place = [&](Tensor like) {
    return iota(like.builder(), {like.dtype(), {1, 1, 1, places}}, 3, loc);
  };
  Tensor mask;
  if (first.valid()) mask = greater_equal(place(first), column(first, "first"));
  if (end.valid()) mask = both_masks(mask, less(place(end), column(end, "end")));
  return mask;
}

Tensor both_masks(Tensor a, Tensor b) {
  if (!a.valid()) return b;
  return b.valid() ? logical_and(a, b) : a;
}

}  // namespace fullbore::nn

#include "fullbore/optim/stored_moment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/optim/rounding.h"

namespace fullbore {
namespace {

constexpr int64_t kLargestBlock = 256;
constexpr int64_t kLeastBlock = 64;
constexpr int64_t kLanes = 16;  // of the widest vectors: rows of a block then have no rest
constexpr double kSignedSteps = 127;
constexpr double kUnsignedSteps = 255;

// A block of zeros has no magnitude to be divided by.
Tensor divisor(Tensor scale) { return maximum(scale, dtype_smallest_normal(DType::f32)); }

Tensor decoded(Tensor codes, Tensor scale, StoredMoment::Range range) {
  const Tensor code = cast(codes, DType::f32);
  if (range == StoredMoment::Range::both_signs) {
    const Tensor root = code * (1 / kSignedSteps);
    return root * abs(root) * scale;
  }
  const Tensor root = code * (1 / kUnsignedSteps);
  const Tensor square = root * root;
  return square * square * scale;
}

Tensor encoded(Tensor value, Tensor scale, StoredMoment::Range range) {
  if (range == StoredMoment::Range::both_signs)
    return cast(round(sqrt(abs(value) / divisor(scale)) * kSignedSteps) * sign(value), DType::i8);
  const Tensor code = sqrt(sqrt(value / divisor(scale))) * kUnsignedSteps;
  return cast(maximum(round(code), ceil(minimum(code, 1.0))), DType::u8);
}

}  // namespace

const std::vector<std::string>& moment_storages() {
  static const std::vector<std::string> names = {"f32", "bf16", "int8"};
  return names;
}

int64_t moment_block(int64_t elements) {
  if (elements < kSmallMoment) return 0;
  for (int64_t block = kLargestBlock; block >= kLeastBlock; block -= kLanes)
    if (elements % block == 0) return block;
  return 0;
}

StoredMoment::StoredMoment(Trace& trace, Place place, Range range, Keep keep)
    : place_(std::move(place)), range_(range), keep_(std::move(keep)) {
  const std::vector<std::string>& known = moment_storages();
  if (std::ranges::find(known, place_.storage) == known.end())
    throw UsageError(fmt::format("unknown storage of moments '{}'.{} There are {}.", place_.storage,
                                 did_you_mean(place_.storage, known), fmt::join(known, ", ")));
  const int64_t elements = place_.shape.elements();
  if (elements < kSmallMoment || (place_.storage == "int8" && moment_block(elements) == 0))
    place_.storage = "f32";
  const DType dtype = place_.storage == "f32"        ? DType::f32
                      : place_.storage == "bf16"     ? DType::bf16
                      : range == Range::not_negative ? DType::u8
                                                     : DType::i8;
  state_ = trace.state(place_.name, Role::moment, {dtype, place_.shape}, Initializer::zeros());
  const Tensor stored = reshape(state_, place_.update_shape);
  if (place_.storage != "int8") {
    value_ = cast(stored, DType::f32);
    return;
  }
  const int64_t blocks = elements / moment_block(elements);
  scale_ = trace.state(place_.name + ".scale", Role::moment, {DType::f32, {blocks}},
                       Initializer::zeros());
  value_ = decoded(stored, expand_dims(scale_, 1), range_);
}

void StoredMoment::keep(Tensor next) const {
  if (place_.storage == "int8") {
    const Tensor scale = reduce_max(abs(next), {1}, true);
    keep_(state_, encoded(next, scale, range_));
    keep_(scale_, squeeze(scale, 1));
    return;
  }
  if (place_.storage == "bf16")
    next =
        cast(place_.draw ? round_stochastically_to_bf16(next, place_.draw()) : next, DType::bf16);
  keep_(state_, next);
}

}  // namespace fullbore

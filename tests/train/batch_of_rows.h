#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/train/step_function.h"

/// The batch of tests of running statistics: x [12, 4] and y [12], f32.
namespace fullbore::testing_support {

inline constexpr int64_t kRows = 12;
inline constexpr int64_t kWidth = 4;
inline const std::vector<BatchField> kFields = {{"x", {DType::f32, {kRows, kWidth}}},
                                                {"y", {DType::f32, {kRows}}}};

struct alignas(64) Batch {
  float x[kRows * kWidth];
  alignas(64) float y[kRows];
};

/// Normal numbers, those of the position.
inline Batch batch_of(uint64_t position) {
  Batch batch = {};
  PhiloxStream draws(5, position);
  for (float& value : batch.x) value = static_cast<float>(draws.normal());
  for (float& value : batch.y) value = static_cast<float>(draws.normal());
  return batch;
}

}  // namespace fullbore::testing_support

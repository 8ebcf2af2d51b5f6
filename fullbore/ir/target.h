#pragma once
#include <set>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// What passes may know of a device: plain data that a backend fills in, so that no pass includes a
/// backend and no backend a pass. And what is asked of the device: the precision.
struct Target {
  std::string name;               ///< "cpu", "null", "interpreter"
  std::set<std::string> claimed;  ///< composite ops that have a kernel of their own
  bool native_bf16 = false;       ///< bf16 contractions run faster than f32
  int threads = 1;

  /// f32: everything as the model says. bf16 or f16: of contractions, and of what kernels hand to one
  /// another (passes/lower_precision.h).
  DType precision = DType::f32;
  /// Modules, by patterns of their scopes, that stay f32 even then.
  std::vector<std::string> fp32_scopes = {};
};

}  // namespace fullbore

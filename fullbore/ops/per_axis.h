#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "fullbore/base/source_loc.h"

namespace fullbore {

/// A number for each spatial axis, or one for all of them: `{.stride = 2}`, `{.stride = {2, 1}}`.
struct PerAxis {
  std::vector<int64_t> values;
  PerAxis(int64_t all) : values{all} {}                            // NOLINT
  PerAxis(std::initializer_list<int64_t> each) : values(each) {}   // NOLINT
  PerAxis(std::vector<int64_t> each) : values(std::move(each)) {}  // NOLINT
};

/// The number of each of `axes` axes. UsageError "op: name ..." if there are not as many, or one is below `least`.
std::vector<int64_t> each_axis(const char* op, const PerAxis& numbers, const char* name, int axes,
                               int64_t least, SourceLoc loc);

}  // namespace fullbore

#include "fullbore/ops/per_axis.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

namespace fullbore {

std::vector<int64_t> each_axis(const char* op, const PerAxis& numbers, const char* name, int axes,
                               int64_t least, SourceLoc loc) {
  std::vector<int64_t> result = numbers.values;
  if (result.size() == 1) result.assign(static_cast<size_t>(axes), result[0]);
  if (static_cast<int>(result.size()) != axes)
    throw UsageError(
        fmt::format("{}: {} has {} numbers for {} spatial axes", op, name, result.size(), axes),
        loc);
  for (int64_t number : result)
    if (number < least)
      throw UsageError(fmt::format("{}: {} {} is below {}", op, name, number, least), loc);
  return result;
}

}  // namespace fullbore

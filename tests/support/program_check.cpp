#include "tests/support/program_check.h"

#include <fmt/format.h>

#include <cstring>

namespace fullbore::testing_support {

std::string compare_bits(std::span<const Literal> a, std::span<const Literal> b) {
  if (a.size() != b.size()) return "number of tensors";
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<char> left = a[i].bytes();
    const std::vector<char> right = b[i].bytes();
    if (left == right) continue;
    for (int64_t e = 0; e < a[i].elements(); ++e)
      if (std::memcmp(&left[static_cast<size_t>(e * dtype_bytes(a[i].dtype()))],
                      &right[static_cast<size_t>(e * dtype_bytes(a[i].dtype()))],
                      static_cast<size_t>(dtype_bytes(a[i].dtype()))) != 0)
        return fmt::format("tensor {} element {}: {} and {}", i, e, a[i].at(e), b[i].at(e));
    return fmt::format("tensor {}: sizes", i);
  }
  return "";
}

}  // namespace fullbore::testing_support

#include "fullbore/backend/cpu/int8/int8_unit.h"

#include <cpuid.h>

#include <vector>

#include "fullbore/backend/cpu/processor.h"

namespace fullbore::cpu {
namespace {

// Not every compiler's builtin knows of it: leaf 7, second part, bit 4 of EAX.
bool has_avx_vnni() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}

std::vector<const Int8Unit*> find_units() {
  const VectorUnit unit = this_processor().vector_unit;
  std::vector<const Int8Unit*> units;
  if (unit == VectorUnit::avx512 && __builtin_cpu_supports("avx512vnni") != 0)
    units.push_back(&kInt8Avx512Vnni);
  if (unit >= VectorUnit::avx2 && has_avx_vnni()) units.push_back(&kInt8AvxVnni);
  if (unit >= VectorUnit::avx2) units.push_back(&kInt8Avx2);
  units.push_back(&kInt8Baseline);
  return units;
}

}  // namespace

std::span<const Int8Unit* const> int8_units() {
  static const std::vector<const Int8Unit*> units = find_units();
  return units;
}

}  // namespace fullbore::cpu

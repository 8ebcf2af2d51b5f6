#include "fullbore/device/cpu/quant/int8_unit.h"

#include <vector>

#include "fullbore/base/processor.h"

namespace fullbore::cpu {
namespace {

std::vector<const Int8Unit*> units_of([[maybe_unused]] const Processor& processor) {
  std::vector<const Int8Unit*> units;
#if defined(__x86_64__)
  if (processor.avx512_vnni) units.push_back(&kInt8Avx512Vnni);
  if (processor.avx_vnni) units.push_back(&kInt8AvxVnni);
  if (processor.vector_unit >= VectorUnit::avx2) units.push_back(&kInt8Avx2);
#endif
  units.push_back(&kInt8Baseline);
  return units;
}

}  // namespace

std::vector<const Int8Unit*> int8_units() { return units_of(this_processor()); }

}  // namespace fullbore::cpu

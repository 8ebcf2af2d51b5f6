#include "fullbore/base/bf16_note.h"

namespace fullbore {

std::string_view bf16_note(const Processor& processor) {
  if (processor.bf16_products) return "";
  return "no bf16 products on this processor (AVX512-BF16, AMX): engine.precision=bf16 is no "
         "faster "
         "than fp32 here, and saves memory";
}

}  // namespace fullbore

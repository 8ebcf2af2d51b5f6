#include "fullbore/base/bf16_note.h"

namespace fullbore {

std::string_view bf16_note(const Processor& processor) {
  if (processor.avx512_bf16) return "";
  return "no bf16 dot products on this processor (AVX512-BF16, AMX): engine.precision=bf16 is no "
         "faster "
         "than fp32 here, and saves memory";
}

}  // namespace fullbore

#pragma once
#include <string_view>

#include "fullbore/base/processor.h"

namespace fullbore {

/// What engine.precision=bf16 gains on a processor without bf16 matmuls, for people; "" where they are faster than
/// fp32. The only place that decides it: `doctor`, the remedies for a run that does not fit, and the note at the start
/// of one say the same.
std::string_view bf16_note(const Processor& processor);

}  // namespace fullbore

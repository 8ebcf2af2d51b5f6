#pragma once
#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// recurrence_states and recurrence_outputs whose chunks are single tokens, as in decoding: a state is read
/// and written once, and there are no pairs of tokens. Items as of the others (recurrence.h). Bound: the bytes of
/// the states.
std::unique_ptr<Kernel> make_one_token_states(const KernelRequest& request, VectorUnit unit);
std::unique_ptr<Kernel> make_one_token_outputs(const KernelRequest& request, VectorUnit unit);

}  // namespace fullbore::cpu

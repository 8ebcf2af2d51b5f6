#pragma once
#include <optional>
#include <string>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/cuda/driver/driver.h"

namespace fullbore::cuda {

/// Can the driver make machine code of the module that another process may load? Not where its PTX declares functions of the
/// driver's own, such as cudaGraphSetConditional: it links those as it loads PTX, and what its linker makes of a call that
/// nobody has told it about may be a kernel that does nothing.
bool can_be_kept(const Driver& driver, const Module& module);

/// What the driver's compiler makes of the module's PTX for the card that the calling thread has entered; nothing where it
/// refuses, for whatever reason.
std::optional<std::string> machine_code(const Driver& driver, const Module& module);

}  // namespace fullbore::cuda

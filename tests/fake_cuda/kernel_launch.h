#pragma once
#include <functional>

#include "tests/fake_cuda/machine.h"

namespace fullbore::fake_cuda {

/// What makes a launch, with the arguments as they are now; nothing where no card would take it.
std::function<void()> launch_of(Function& function, ptx::Extent grid, ptx::Extent block,
                                unsigned shared_bytes, void** arguments);

}  // namespace fullbore::fake_cuda

#pragma once
#include <functional>

#include "tests/fake_cuda/machine.h"

namespace fullbore::fake_cuda {

/// CUresult of a launch whose grid is no multiple of the clusters that its kernel has. Source: NVIDIA, "CUDA Driver API".
inline constexpr int kInvalidClusterSize = 912;

/// What a card says of such a grid: kSuccess, or that.
int refusal_of(const Function& function, ptx::Extent grid);

/// What makes a launch, with the arguments as they are now; nothing where no card would take it.
std::function<void()> launch_of(Function& function, ptx::Extent grid, ptx::Extent block,
                                unsigned shared_bytes, void** arguments);

}  // namespace fullbore::fake_cuda

#pragma once
#include <string_view>

namespace fullbore::cuda {

/// PTX of fullbore/device/cuda/kernels/<file>.cpp, as cmake/ptx.cmake put it into the library; empty if there is no such
/// file.
std::string_view embedded_ptx(std::string_view file);

}  // namespace fullbore::cuda

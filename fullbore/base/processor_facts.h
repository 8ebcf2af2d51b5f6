#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// The processor as /proc/cpuinfo names it, or "unknown processor".
std::string processor_name();

/// The vector instructions that matter to training and that this processor (and operating system)
/// offers: "avx2 fma avx512f avx512_bf16 amx_bf16". Empty on other architectures.
std::vector<std::string> processor_features();

}  // namespace fullbore

#include "fullbore/device/cpu/libraries.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <oneapi/dnnl/dnnl.h>

namespace fullbore::cpu {
namespace {

std::string threading(unsigned runtime) {
  switch (runtime) {
    case DNNL_RUNTIME_OMP: return "OpenMP";
    case DNNL_RUNTIME_TBB: return "TBB";
    case DNNL_RUNTIME_SEQ: return "sequential";
    case DNNL_RUNTIME_THREADPOOL: return "thread pool";
    default: return fmt::format("runtime {}", runtime);
  }
}

}  // namespace

std::vector<Library> libraries() {
  const dnnl_version_t* dnnl = dnnl_version();
  return {{"LLVM", LLVM_VERSION_STRING, "compiles kernels for this processor"},
          {"oneDNN", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch),
           fmt::format("matmuls ({} build)", threading(dnnl->cpu_runtime))}};
}

}  // namespace fullbore::cpu

#include "fullbore/device/cpu/libraries.h"

#include <llvm/Config/llvm-config.h>

namespace fullbore::cpu {

std::vector<Library> libraries() {
  return {{"LLVM", LLVM_VERSION_STRING, "compiles kernels for this processor"}};
}

}  // namespace fullbore::cpu

#include "fullbore/device/cuda/driver/result_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace fullbore::cuda {
namespace {

struct KnownCode {
  int code;
  std::string_view name;
  std::string_view meaning;
};

constexpr KnownCode kKnown[] = {
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "an argument is out of range"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "the memory is taken"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "the driver was not started"},
    {kDeinitialized, "CUDA_ERROR_DEINITIALIZED", "the driver has been shut down"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "the driver sees no card"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "there is no such card"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "the code is no code of a kernel"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "the thread has no context of the card"},
    {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the code is for another kind of card"},
    {kUncorrectableMemory, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "the card's memory has an error that it could not correct"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "the driver cannot compile the PTX"},
    {kUnsupportedPtx, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is newer than the driver"},
    {kSymbolNotFound, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
     "code calls what the driver does not have"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "a handle is of nothing that exists"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "there is nothing of that name"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "what was asked about has not ended"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel touched memory that is not its own"},
    {kTooManyResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "a kernel wants more registers or threads than the card has"},
    {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "a kernel ran longer than a card that drives a display allows"},
    {kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel used an address off its grid"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "the driver or the card cannot do it"},
    {kSystemNotReady, "CUDA_ERROR_SYSTEM_NOT_READY", "the system's driver services do not run"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "the driver does not say why"},
};

}  // namespace

std::string result_text(int code) {
  const auto* const known = std::ranges::find(kKnown, code, &KnownCode::code);
  if (known == std::end(kKnown)) return fmt::format("CUDA error {}", code);
  return fmt::format("{} ({}): {}", known->name, code, known->meaning);
}

bool is_refusal_of_code(int code) {
  return code == kInvalidImage || code == kInvalidPtx || code == kUnsupportedPtx ||
         code == kSymbolNotFound || code == kNotSupported;
}

bool is_lost(int code) {
  return code == kUncorrectableMemory ||
         (code >= kIllegalAddress && code <= kLaunchFailed && code != kTooManyResources);
}

}  // namespace fullbore::cuda

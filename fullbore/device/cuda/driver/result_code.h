#pragma once
#include <string>

namespace fullbore::cuda {

/// What calls of the driver return (CUresult). Source of the numbers: NVIDIA, "CUDA Driver API", enumeration CUresult.
enum ResultCode : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kUncorrectableMemory = 214,
  kInvalidPtx = 218,
  kUnsupportedPtx = 222,
  kSymbolNotFound = 302,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kTooManyResources = 701,
  kLaunchTimeout = 702,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kUnknown = 999,
};

/// "CUDA_ERROR_ILLEGAL_ADDRESS (700): a kernel touched memory that is not its own"; "CUDA error 77" of a code that is
/// not known here.
std::string result_text(int code);

/// Is it said of code that the driver does not take: of another PTX, or with calls that it does not link?
bool is_refusal_of_code(int code);

/// Has the device failed for good, so that nothing can be done with its memory any more?
bool is_lost(int code);

}  // namespace fullbore::cuda

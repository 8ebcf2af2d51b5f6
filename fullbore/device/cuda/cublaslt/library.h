#pragma once
#include <memory>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/device/cuda/cublaslt/interface.h"
#include "fullbore/device/cuda/driver/handles.h"

namespace fullbore::cuda {

/// NVIDIA's library of matrix products, as it is found on this machine: cuBLASLt 12 or 13. Nothing needs it.
class CublasLt {
 public:
  /// The library that FULLBORE_CUBLASLT names, or else `libcublasLt.so.13` or `libcublasLt.so.12` as the system's loader finds
  /// them. Loaded once for all that hold it. Failure: there is none, it is of another version, or lacks a function.
  static Result<std::shared_ptr<const CublasLt>> load();

  std::string version_text() const;  ///< "13.0.2"

  int (*create)(LtHandle*) = nullptr;
  int (*destroy)(LtHandle) = nullptr;
  size_t (*version)() = nullptr;
  int (*make_matmul)(LtMatmulHandle*, int compute, int scale_type) = nullptr;
  int (*destroy_matmul)(LtMatmulHandle) = nullptr;
  int (*set_matmul)(LtMatmulHandle, int attribute, const void*, size_t bytes) = nullptr;
  int (*make_layout)(LtLayoutHandle*, int type, uint64_t rows, uint64_t columns,
                     int64_t stride) = nullptr;
  int (*destroy_layout)(LtLayoutHandle) = nullptr;
  int (*set_layout)(LtLayoutHandle, int attribute, const void*, size_t bytes) = nullptr;
  int (*make_preference)(LtPreferenceHandle*) = nullptr;
  int (*destroy_preference)(LtPreferenceHandle) = nullptr;
  int (*set_preference)(LtPreferenceHandle, int attribute, const void*, size_t bytes) = nullptr;
  /// D = alpha A B + beta C: layouts of A, B, C and D.
  int (*find_algorithms)(LtHandle, LtMatmulHandle, LtLayoutHandle, LtLayoutHandle, LtLayoutHandle,
                         LtLayoutHandle, LtPreferenceHandle, int most, LtFound*,
                         int* found) = nullptr;
  int (*matmul)(LtHandle, LtMatmulHandle, const void* alpha, const void* a, LtLayoutHandle,
                const void* b, LtLayoutHandle, const void* beta, const void* c, LtLayoutHandle,
                void* d, LtLayoutHandle, const LtAlgorithm*, void* workspace,
                size_t workspace_bytes, StreamHandle) = nullptr;

 private:
  static Result<std::shared_ptr<const CublasLt>> open();
  /// "": all functions are there, of a version that is known.
  std::string find_functions(const std::string& name, void* library);
};

/// "CUBLAS_STATUS_NOT_SUPPORTED (15)".
std::string lt_status_text(int status);

}  // namespace fullbore::cuda

#pragma once
#include <cstddef>
#include <cstdint>

/// The part of cuBLASLt's interface that is used, declared by ourselves: types and numbers as they pass through the
/// library. Source: NVIDIA, "cuBLAS", chapter "Using the cuBLASLt API", 12.0 to 13.0; layouts are those of 64-bit systems.
namespace fullbore::cuda {

// What the library hands out and only it can look into.
using LtHandle = struct LtContents*;
using LtMatmulHandle = struct LtMatmulContents*;          ///< cublasLtMatmulDesc_t
using LtLayoutHandle = struct LtLayoutContents*;          ///< cublasLtMatrixLayout_t
using LtPreferenceHandle = struct LtPreferenceContents*;  ///< cublasLtMatmulPreference_t

/// What its calls return (cublasStatus_t).
enum LtStatus : int {
  kLtSuccess = 0,
  kLtNotInitialized = 1,
  kLtAllocationFailed = 3,
  kLtInvalidValue = 7,
  kLtArchitectureMismatch = 8,
  kLtMappingError = 11,
  kLtExecutionFailed = 13,
  kLtInternalError = 14,
  kLtNotSupported = 15,
  kLtLicenseError = 16,
};

/// Of elements (cudaDataType).
enum LtType : int { kLtF32 = 0, kLtF16 = 2, kLtBf16 = 14 };

/// How products are made and summed (cublasComputeType_t). That of f32 makes products of f32 in f32.
enum LtCompute : int { kLtSumsInF32 = 68, kLtProductsInTf32 = 77 };

/// cublasOperation_t.
enum LtOperation : int { kLtAsItIs = 0, kLtTransposed = 1 };

/// Of a product (cublasLtMatmulDescAttributes_t).
enum LtMatmulAttribute : int {
  kLtTransposeA = 3,  ///< int32_t: LtOperation
  kLtTransposeB = 4,
};

/// Of a matrix (cublasLtMatrixLayoutAttribute_t).
enum LtLayoutAttribute : int {
  kLtBatchCount = 5,   ///< int32_t
  kLtBatchStride = 6,  ///< int64_t: elements from one matrix to the next
};

/// Of the search for an algorithm (cublasLtMatmulPreferenceAttributes_t).
enum LtPreferenceAttribute : int {
  kLtMostWorkspaceBytes = 1,  ///< uint64_t
  kLtReductionSchemes = 3,    ///< uint32_t: a mask
  kLtAlignmentA = 5,          ///< uint32_t: bytes; likewise of B, C and D behind it
};
/// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: partial sums lie in the workspace, in f32, and are added in one order. Products that
/// are not split need no scheme.
inline constexpr uint32_t kLtReduceInWorkspace = 2;

/// cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  uint64_t data[8] = {};
};

/// cublasLtMatmulHeuristicResult_t.
struct LtFound {
  LtAlgorithm algorithm;
  size_t workspace_bytes = 0;
  int status = kLtNotSupported;  ///< the rest holds for kLtSuccess alone
  float waves = 0;
  int reserved[4] = {};
};
static_assert(sizeof(LtFound) == 96);

}  // namespace fullbore::cuda

#pragma once
#include <cstddef>
#include <cstdint>

/// The part of the driver's interface that is used, declared by ourselves: types and numbers as they pass through
/// `libcuda.so.1`. Source: NVIDIA, "CUDA Driver API", 12.2; layouts are those of 64-bit systems.
namespace fullbore::cuda {

/// An address of a card's memory (CUdeviceptr).
using DevicePointer = uint64_t;

// What the driver hands out and only it can look into.
using ContextHandle = struct ContextContents*;
using StreamHandle = struct StreamContents*;
using EventHandle = struct EventContents*;
using ModuleHandle = struct ModuleContents*;
using LinkHandle = struct LinkContents*;
using FunctionHandle = struct FunctionContents*;
using GraphHandle = struct GraphContents*;
using NodeHandle = struct NodeContents*;
using GraphExecHandle = struct GraphExecContents*;
/// What decides about a conditional node (CUgraphConditionalHandle).
using ConditionHandle = uint64_t;

/// Questions about a card (CUdevice_attribute).
enum CardAttribute : int {
  kMultiprocessorCount = 16,
  kClockKilohertz = 13,
  kMemoryClockKilohertz = 36,
  kMemoryBusBits = 37,
  kMostThreads = 39,  ///< this and the next three: of a multiprocessor
  kMostSharedBytes = 81,
  kMostRegisters = 82,
  kMostBlocks = 106,
  kReservedSharedBytes = 111,  ///< of each block, for the driver
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMostSharedBytesOptedIn = 97,
};

/// Of a kernel (CUfunction_attribute).
enum FunctionAttribute : int {
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMostDynamicSharedBytes = 8,
};

/// What cuModuleLoadDataEx is told (CUjit_option).
enum LoadOption : int { kErrorLog = 5, kErrorLogBytes = 6 };

// What cuTensorMapEncodeTiled is told.
enum MapElement : int { kMapOfF16 = 6, kMapOfBf16 = 9 };  ///< CUtensorMapDataType
inline constexpr int kMapSwizzle128 = 3;                  ///< CU_TENSOR_MAP_SWIZZLE_128B
inline constexpr int kMapPromotion256 = 3;                ///< CU_TENSOR_MAP_L2_PROMOTION_L2_256B
inline constexpr int kPtxInput = 1;                       ///< of cuLinkAddData: CU_JIT_INPUT_PTX

inline constexpr unsigned kStreamOfItsOwn = 1;    ///< CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventWithoutTime = 2;  ///< CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kPinnedForAll = 1;      ///< CU_MEMHOSTALLOC_PORTABLE
inline constexpr int kMemoryOfHost = 1;           ///< CU_MEMORYTYPE_HOST
inline constexpr int kMemoryOfDevice = 2;         ///< CU_MEMORYTYPE_DEVICE

/// CU_STREAM_CAPTURE_MODE_RELAXED: other threads may allocate meanwhile, and code may be loaded when it is first asked for.
inline constexpr int kCaptureRelaxed = 2;

/// A kernel node of a graph (CUDA_KERNEL_NODE_PARAMS_v2).
struct KernelNode {
  FunctionHandle function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  ContextHandle context = nullptr;
};
static_assert(sizeof(KernelNode) == 72);

inline constexpr int kConditionalNode = 13;        ///< CU_GRAPH_NODE_TYPE_CONDITIONAL
inline constexpr unsigned kConditionAtLaunch = 1;  ///< CU_GRAPH_COND_ASSIGN_DEFAULT

/// A conditional node of a graph, whose body is made if the condition is not 0 (CUgraphNodeParams with
/// CUDA_CONDITIONAL_NODE_PARAMS). What is not used has to be 0.
struct ConditionalNode {
  int type = kConditionalNode;
  int reserved[3] = {};
  ConditionHandle condition = 0;
  int kind = 0;  ///< CU_GRAPH_COND_TYPE_IF
  unsigned body_count = 1;
  GraphHandle* bodies = nullptr;  ///< filled in by the driver, which owns them
  ContextHandle context = nullptr;
  uint64_t unused[26] = {};
};
static_assert(sizeof(ConditionalNode) == 256);

/// A memset node of a graph (CUDA_MEMSET_NODE_PARAMS_v1).
struct FillNode {
  DevicePointer to = 0;
  size_t pitch = 0;
  unsigned value = 0;
  unsigned element_bytes = 1;
  size_t width = 0;  ///< elements
  size_t height = 1;
};
static_assert(sizeof(FillNode) == 40);

/// One end of a copy.
struct CopyEnd {
  size_t x_bytes = 0, y = 0, z = 0, level = 0;
  int memory = kMemoryOfDevice;
  void* host = nullptr;
  DevicePointer device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  size_t pitch = 0, height = 0;
};
/// A memcpy node of a graph (CUDA_MEMCPY3D_v2).
struct CopyNode {
  CopyEnd from, to;
  size_t width_bytes = 0, height = 1, depth = 1;
};
static_assert(sizeof(CopyNode) == 200);

}  // namespace fullbore::cuda

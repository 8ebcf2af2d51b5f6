#pragma once
#include <memory>
#include <optional>
#include <string>

#include "fullbore/device/cuda/driver/handles.h"
#include "fullbore/device/cuda/driver/result_code.h"

namespace fullbore::cuda {

/// A shared library that is loaded as long as this lives.
class Library {
 public:
  /// UsageError: it cannot be loaded.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// UsageError that names the symbol: it is not there.
  void* symbol(const char* name) const;
  /// Null: it is not there.
  void* find(const char* name) const;
  const std::string& path() const { return path_; }
  /// Name, size and time of change, in seconds since 1970, of the file that was loaded, links followed; "" of none that
  /// can be looked at.
  std::string build() const;

 private:
  std::string path_;
  void* handle_ = nullptr;
};

/// Throws what a call of the driver has met: MemoryError for memory that is taken, else DeviceError. Both name the call, and
/// the fault of a card the launches that it may be of (in_flight.h).
[[noreturn]] void throw_failure(const char* call, int code);

/// A function of the driver. Calling it throws (throw_failure) unless it succeeds.
template <class... Arguments>
class Call {
 public:
  Call(const Library& library, const char* name)
      : name_(name), function_(reinterpret_cast<int (*)(Arguments...)>(library.symbol(name))) {}
  void operator()(Arguments... arguments) const {
    if (const int code = function_(arguments...); code != kSuccess) throw_failure(name_, code);
  }
  /// Its ResultCode, for whoever has more to say of a failure, or nothing to do about it.
  int attempt(Arguments... arguments) const { return function_(arguments...); }
  const char* name() const { return name_; }

 private:
  const char* name_;
  int (*function_)(Arguments...);
};

/// NVIDIA's driver: what it takes to know whether it will do.
class DriverStart {
 public:
  /// Loads the library and starts the driver. UsageError: there is none, it refuses, or is older than CUDA 12.2.
  explicit DriverStart(const std::string& path);
  int version() const { return version_; }  ///< 12020: CUDA 12.2
  std::string version_text() const;         ///< "12.2"
  /// Which file it is, for what depends on more of it than the version: "libcuda.so.535.183.01, 29453344 bytes of
  /// 1719792000". Another release of NVIDIA's for the same CUDA has another name.
  std::string build() const { return library_.build(); }

 protected:
  /// A function that is of use, but not needed; nothing where it is not there.
  template <class Function>
  std::optional<Function> find(const char* name) const {
    if (library_.find(name) == nullptr) return std::nullopt;
    return Function(library_, name);
  }
  /// The same of one that drivers have from a version on.
  template <class Function>
  std::optional<Function> since(int version, const char* name) const {
    return version_ < version ? std::nullopt : find<Function>(name);
  }

  Library library_;

 private:
  int version_ = 0;
};

/// And the functions that are used, by what they do. Each has the name and version by which the library exports it.
class Driver : public DriverStart {
 public:
  using DriverStart::DriverStart;

  Call<int*> count_cards{library_, "cuDeviceGetCount"};
  Call<int*, int> card{library_, "cuDeviceGet"};
  Call<char*, int, int> card_name{library_, "cuDeviceGetName"};
  Call<size_t*, int> card_bytes{library_, "cuDeviceTotalMem_v2"};
  Call<int*, int, int> card_attribute{library_, "cuDeviceGetAttribute"};
  Call<ContextHandle*, int> retain_context{library_, "cuDevicePrimaryCtxRetain"};
  Call<int> release_context{library_, "cuDevicePrimaryCtxRelease_v2"};
  Call<ContextHandle> set_context{library_, "cuCtxSetCurrent"};

  Call<size_t*, size_t*> memory_left{library_, "cuMemGetInfo_v2"};
  Call<DevicePointer*, size_t> allocate{library_, "cuMemAlloc_v2"};
  Call<DevicePointer> free{library_, "cuMemFree_v2"};
  Call<void**, size_t, unsigned> allocate_pinned{library_, "cuMemHostAlloc"};
  Call<void*> free_pinned{library_, "cuMemFreeHost"};
  Call<DevicePointer, const void*, size_t, StreamHandle> copy_in{library_, "cuMemcpyHtoDAsync_v2"};
  Call<void*, DevicePointer, size_t, StreamHandle> copy_out{library_, "cuMemcpyDtoHAsync_v2"};
  Call<DevicePointer, DevicePointer, size_t, StreamHandle> copy{library_, "cuMemcpyDtoDAsync_v2"};
  Call<DevicePointer, unsigned char, size_t, StreamHandle> fill_bytes{library_, "cuMemsetD8Async"};
  Call<DevicePointer, unsigned, size_t, StreamHandle> fill_words{library_, "cuMemsetD32Async"};

  Call<StreamHandle*, unsigned> make_stream{library_, "cuStreamCreate"};
  Call<StreamHandle> destroy_stream{library_, "cuStreamDestroy_v2"};
  Call<StreamHandle> wait_for_stream{library_, "cuStreamSynchronize"};
  Call<StreamHandle, EventHandle, unsigned> wait_in_stream{library_, "cuStreamWaitEvent"};
  Call<EventHandle*, unsigned> make_event{library_, "cuEventCreate"};
  Call<EventHandle> destroy_event{library_, "cuEventDestroy_v2"};
  Call<EventHandle, StreamHandle> record_event{library_, "cuEventRecord"};
  Call<EventHandle> wait_for_event{library_, "cuEventSynchronize"};
  Call<float*, EventHandle, EventHandle> milliseconds{library_, "cuEventElapsedTime"};

  Call<ModuleHandle*, const void*, unsigned, int*, void**> load_module{library_,
                                                                       "cuModuleLoadDataEx"};
  Call<ModuleHandle> unload_module{library_, "cuModuleUnload"};
  // The compiler by itself, whose machine code can be kept.
  using MakeLink = Call<unsigned, int*, void**, LinkHandle*>;
  using AddToLink = Call<LinkHandle, int, void*, size_t, const char*, unsigned, int*, void**>;
  using CompleteLink = Call<LinkHandle, void**, size_t*>;
  using DestroyLink = Call<LinkHandle>;
  std::optional<MakeLink> make_link = find<MakeLink>("cuLinkCreate_v2");
  std::optional<AddToLink> add_to_link = find<AddToLink>("cuLinkAddData_v2");
  std::optional<CompleteLink> complete_link = find<CompleteLink>("cuLinkComplete");
  std::optional<DestroyLink> destroy_link = find<DestroyLink>("cuLinkDestroy");
  bool has_linker() const { return make_link && add_to_link && complete_link && destroy_link; }
  Call<FunctionHandle*, ModuleHandle, const char*> function{library_, "cuModuleGetFunction"};
  Call<FunctionHandle, int, int> set_function_attribute{library_, "cuFuncSetAttribute"};
  Call<int*, int, FunctionHandle> function_attribute{library_, "cuFuncGetAttribute"};
  Call<int*, FunctionHandle, int, size_t> resident_blocks{
      library_, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  Call<FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
       StreamHandle, void**, void**>
      launch{library_, "cuLaunchKernel"};
  Call<void*, int, unsigned, DevicePointer, const uint64_t*, const uint64_t*, const uint32_t*,
       const uint32_t*, int, int, int, int>
      encode_map{library_, "cuTensorMapEncodeTiled"};

  Call<GraphHandle*, unsigned> make_graph{library_, "cuGraphCreate"};
  Call<GraphHandle> destroy_graph{library_, "cuGraphDestroy"};
  Call<NodeHandle*, GraphHandle, const NodeHandle*, size_t, const KernelNode*> add_kernel{
      library_, "cuGraphAddKernelNode_v2"};
  Call<NodeHandle*, GraphHandle, const NodeHandle*, size_t, const CopyNode*, ContextHandle>
      add_copy{library_, "cuGraphAddMemcpyNode"};
  Call<NodeHandle*, GraphHandle, const NodeHandle*, size_t, const FillNode*, ContextHandle>
      add_fill{library_, "cuGraphAddMemsetNode"};
  Call<NodeHandle*, GraphHandle, const NodeHandle*, size_t> add_join{library_,
                                                                     "cuGraphAddEmptyNode"};
  Call<GraphExecHandle*, GraphHandle, unsigned long long> instantiate_graph{
      library_, "cuGraphInstantiateWithFlags"};
  // Of launches from then on.
  Call<GraphExecHandle, NodeHandle, const KernelNode*> set_kernel{
      library_, "cuGraphExecKernelNodeSetParams_v2"};
  Call<GraphExecHandle, NodeHandle, const CopyNode*, ContextHandle> set_copy{
      library_, "cuGraphExecMemcpyNodeSetParams"};
  Call<GraphExecHandle, NodeHandle, const FillNode*, ContextHandle> set_fill{
      library_, "cuGraphExecMemsetNodeSetParams"};
  Call<GraphExecHandle> destroy_graph_exec{library_, "cuGraphExecDestroy"};
  Call<GraphExecHandle, StreamHandle> launch_graph{library_, "cuGraphLaunch"};

  // What a stream is told between these becomes nodes of a graph, and a graph is a node of others: with its contents as they
  // are then.
  Call<StreamHandle, int> begin_capture{library_, "cuStreamBeginCapture_v2"};
  Call<StreamHandle, GraphHandle*> end_capture{library_, "cuStreamEndCapture"};
  Call<GraphHandle, NodeHandle*, size_t*> graph_nodes{library_, "cuGraphGetNodes"};
  Call<NodeHandle*, GraphHandle, const NodeHandle*, size_t, GraphHandle> add_graph{
      library_, "cuGraphAddChildGraphNode"};
  Call<GraphExecHandle, NodeHandle, GraphHandle> set_graph{library_,
                                                           "cuGraphExecChildGraphNodeSetParams"};

  // Conditional nodes. Drivers of CUDA 12.3 have them too, and allow kernels alone in their bodies.
  using MakeCondition = Call<ConditionHandle*, GraphHandle, ContextHandle, unsigned, unsigned>;
  using AddConditional =
      Call<NodeHandle*, GraphHandle, const NodeHandle*, size_t, ConditionalNode*>;
  std::optional<MakeCondition> make_condition =
      since<MakeCondition>(12040, "cuGraphConditionalHandleCreate");
  std::optional<AddConditional> add_conditional = since<AddConditional>(12040, "cuGraphAddNode");
  bool has_conditional_nodes() const { return make_condition && add_conditional; }
};

/// The driver of this machine: the library that FULLBORE_CUDA_DRIVER names, or else `libcuda.so.1`. Loaded once for all that
/// hold it. UsageError as DriverStart.
std::shared_ptr<const Driver> load_driver();

}  // namespace fullbore::cuda

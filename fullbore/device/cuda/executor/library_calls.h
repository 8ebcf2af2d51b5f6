#pragma once
#include <memory>
#include <span>

#include "fullbore/device/cuda/executor/graph_nodes.h"
#include "fullbore/device/cuda/executor/launch_sink.h"

/// What a library makes of a node, behind the node's own launches.
namespace fullbore::cuda {

class OwnedGraph;

/// In a stream. DeviceError and MemoryError name the node.
void tell_call(const LoadedKernel& kernel, std::span<const Place> operands, StreamHandle stream);

/// As the nodes of a graph of its own, with addresses as they are now.
std::unique_ptr<OwnedGraph> captured_call(const std::shared_ptr<Context>& context,
                                          const KernelCall& call);

/// Throws what a wait behind it has met, naming the node: DeviceError, MemoryError.
[[noreturn]] void throw_call_failure(const char* call, int code, const LoadedKernel& kernel);

}  // namespace fullbore::cuda

#pragma once
#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/machine.h"

namespace fullbore::fake_cuda {

inline Graph& graph_of(cuda::GraphHandle handle) { return *reinterpret_cast<Graph*>(handle); }

/// The node's index in the graph; none if it is of another.
std::optional<size_t> index_of(const Graph& graph, cuda::NodeHandle node);

/// What a call that adds a node returns.
int add_node(cuda::NodeHandle* node, Graph& graph, const cuda::NodeHandle* before, size_t count,
             GraphNode made);

}  // namespace fullbore::fake_cuda

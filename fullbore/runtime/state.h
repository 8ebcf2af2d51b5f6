#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/shape.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/ir/graph.h"

namespace fullbore {

/// One persistent tensor.
struct StateEntry {
  std::string name;
  Role role = Role::parameter;
  TensorType type;
};

/// Everything that persists from step to step: parameters, moments, averages, counters. Kept in one
/// flat arena per (role, dtype), entries in the order given, each at a multiple of 64 bytes, so that
/// one sweep updates all and one write saves all. Programs bind to entries by name.
class State {
 public:
  struct Arena {
    Role role;
    DType dtype;
    char* data = nullptr;
    int64_t bytes = 0;
    std::vector<int> entries;  ///< indices into entries(), in order of offset
  };

  State() = default;
  /// Zero-filled. Names must be unique.
  explicit State(std::vector<StateEntry> entries);
  State(State&&) noexcept = default;
  State& operator=(State&&) noexcept = default;

  const std::vector<StateEntry>& entries() const { return entries_; }
  const std::vector<Arena>& arenas() const { return arenas_; }
  int find(std::string_view name) const;  ///< index, or -1
  void* data(int entry) const { return pointers_[static_cast<size_t>(entry)]; }
  int64_t bytes() const;  ///< all arenas

  template <class T>
  std::span<T> span(std::string_view name) const {
    const int entry = require(name);
    return {static_cast<T*>(data(entry)),
            static_cast<size_t>(entries_[static_cast<size_t>(entry)].type.elements())};
  }

 private:
  int require(std::string_view name) const;
  std::vector<StateEntry> entries_;
  std::vector<Arena> arenas_;
  std::vector<TensorMemory> memory_;
  std::vector<void*> pointers_;
  std::map<std::string, int, std::less<>> names_;
};

/// Elements of all parameters, frozen ones too.
int64_t parameter_count(const State& state);

/// The State that a graph's inputs ask for (batch inputs left out).
std::vector<StateEntry> state_entries(const Graph& graph);

}  // namespace fullbore

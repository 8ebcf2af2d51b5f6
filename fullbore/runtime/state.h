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
///
/// Beside the entries lie derived weights (ir/derived_weight.h), which are neither saved nor restored. State counts the
/// writes of each entry and so knows which derived weights are out of date: every write of an entry goes through
/// mutable_data() or mutable_span(), once for each time.
class State {
 public:
  struct Arena {
    Role role;
    DType dtype;
    const char* data = nullptr;
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
  const void* data(int entry) const { return pointers_[static_cast<size_t>(entry)]; }
  /// To be written now: weights derived from the entry are out of date.
  void* mutable_data(int entry);
  int64_t bytes() const;  ///< all arenas, derived weights left out

  template <class T>
  std::span<const T> span(std::string_view name) const {
    const int entry = require(name);
    return {static_cast<const T*>(data(entry)), elements(entry)};
  }
  template <class T>
  std::span<T> mutable_span(std::string_view name) {
    const int entry = require(name);
    return {static_cast<T*>(mutable_data(entry)), elements(entry)};
  }

  /// That derived weight of an entry; memory is allocated for a new one.
  int add_derived(const DerivedWeight& weight, const TensorType& type);
  void* derived_data(int derived) const {
    return derived_[static_cast<size_t>(derived)].memory.get();
  }
  /// Has the entry been written since the weight was derived from it?
  bool is_outdated(int derived) const;
  /// It has been derived from the entry as it is.
  void derived_was_made(int derived);
  int64_t derived_bytes() const;

 private:
  struct Derived {
    DerivedWeight weight;
    TensorType type;
    int entry = -1;
    uint64_t made_of = 0;  ///< the entry's count of writes
    TensorMemory memory;
  };

  int require(std::string_view name) const;
  size_t elements(int entry) const {
    return static_cast<size_t>(entries_[static_cast<size_t>(entry)].type.elements());
  }

  std::vector<StateEntry> entries_;
  std::vector<Arena> arenas_;
  std::vector<TensorMemory> memory_;
  std::vector<void*> pointers_;
  std::vector<uint64_t> writes_;  ///< of each entry, from 1
  std::vector<Derived> derived_;
  std::map<std::string, int, std::less<>> names_;
};

/// Elements of all parameters, frozen ones too.
int64_t parameter_count(const State& state);

/// The State that a graph's inputs ask for (batch inputs left out).
std::vector<StateEntry> state_entries(const Graph& graph);

}  // namespace fullbore

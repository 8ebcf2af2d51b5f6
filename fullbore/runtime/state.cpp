#include "fullbore/runtime/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {
constexpr int64_t kAlignment = 64;
int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace

State::State(std::vector<StateEntry> entries) : entries_(std::move(entries)) {
  pointers_.resize(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const StateEntry& entry = entries_[i];
    FB_CHECK(names_.emplace(entry.name, static_cast<int>(i)).second, "State '{}' twice",
             entry.name);
    Arena* home = nullptr;
    for (Arena& arena : arenas_)
      if (arena.role == entry.role && arena.dtype == entry.type.dtype) home = &arena;
    if (!home) home = &arenas_.emplace_back(Arena{entry.role, entry.type.dtype, nullptr, 0, {}});
    home->entries.push_back(static_cast<int>(i));
    home->bytes += aligned(entry.type.bytes());
  }
  for (Arena& arena : arenas_) {
    TensorMemory memory = allocate_tensor_memory(arena.bytes);
    if (!memory) throw std::bad_alloc();
    arena.data = memory.get();
    memory_.push_back(std::move(memory));
    int64_t offset = 0;
    for (int entry : arena.entries) {
      pointers_[static_cast<size_t>(entry)] = arena.data + offset;
      offset += aligned(entries_[static_cast<size_t>(entry)].type.bytes());
    }
  }
}

int State::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? -1 : found->second;
}

int State::require(std::string_view name) const {
  const int entry = find(name);
  FB_CHECK(entry >= 0, "no State '{}'", name);
  return entry;
}

int64_t State::bytes() const {
  int64_t total = 0;
  for (const Arena& arena : arenas_) total += arena.bytes;
  return total;
}

int64_t parameter_count(const State& state) {
  int64_t count = 0;
  for (const StateEntry& entry : state.entries())
    if (entry.role == Role::parameter || entry.role == Role::frozen) count += entry.type.elements();
  return count;
}

std::vector<StateEntry> state_entries(const Graph& graph) {
  std::vector<StateEntry> entries;
  for (const Graph::Input& input : graph.inputs())
    if (is_state(input.role)) entries.push_back({input.name, input.role, graph.type(input.value)});
  return entries;
}

}  // namespace fullbore

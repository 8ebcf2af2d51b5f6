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
  writes_.resize(entries_.size(), 1);
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
    char* const data = memory.get();
    arena.data = data;
    memory_.push_back(std::move(memory));
    int64_t offset = 0;
    for (int entry : arena.entries) {
      pointers_[static_cast<size_t>(entry)] = data + offset;
      offset += aligned(entries_[static_cast<size_t>(entry)].type.bytes());
    }
  }
}

int State::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? -1 : found->second;
}

void* State::mutable_data(int entry) {
  ++writes_[static_cast<size_t>(entry)];
  return pointers_[static_cast<size_t>(entry)];
}

int State::add_derived(const DerivedWeight& weight, const TensorType& type) {
  const int entry = find(weight.parameter);
  FB_CHECK(entry >= 0, "'{}' is derived from no State", weight.name());
  const auto known = std::ranges::find(derived_, weight, &Derived::weight);
  if (known != derived_.end()) {
    FB_CHECK(known->type == type, "'{}' is {}", weight.name(), known->type.text());
    return static_cast<int>(known - derived_.begin());
  }
  TensorMemory memory = allocate_tensor_memory(aligned(type.bytes()));
  if (!memory) throw std::bad_alloc();
  derived_.push_back({weight, type, entry, 0, std::move(memory)});
  return static_cast<int>(derived_.size() - 1);
}

bool State::is_outdated(int derived) const {
  const Derived& found = derived_[static_cast<size_t>(derived)];
  return found.made_of != writes_[static_cast<size_t>(found.entry)];
}

void State::derived_was_made(int derived) {
  Derived& found = derived_[static_cast<size_t>(derived)];
  found.made_of = writes_[static_cast<size_t>(found.entry)];
}

int64_t State::derived_bytes() const {
  int64_t total = 0;
  for (const Derived& each : derived_) total += aligned(each.type.bytes());
  return total;
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

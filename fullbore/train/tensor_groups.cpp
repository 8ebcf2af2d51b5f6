#include "fullbore/train/tensor_groups.h"

#include <utility>

namespace fullbore {
namespace {

const char* group_of(Role role) {
  switch (role) {
    case Role::parameter:
    case Role::frozen: return "weights";
    case Role::ema: return "averages";
    default: return "optimizer";
  }
}

bool is_cache(const StateEntry& entry) {
  return entry.role == Role::recurrent && entry.name.find(".cache.") != std::string::npos;
}

}  // namespace

bool is_saved(const State& state, int entry) {
  return !is_cache(state.entries()[static_cast<size_t>(entry)]) && !state.is_lent(entry);
}

int64_t saved_bytes(const State& state) {
  int64_t bytes = state.bytes() + state.host_bytes();
  for (const StateEntry& entry : state.entries())
    if (is_cache(entry)) bytes -= entry.type.bytes();
  return bytes;
}

Compression compression(std::string_view name) {
  if (name == "optimizer") return Compression::optimizer;
  if (name == "all") return Compression::all;
  FB_CHECK(name == "none", "no compression '{}'", name);
  return Compression::none;
}

std::vector<TensorGroup> tensor_groups(const State& state, Compression compression) {
  std::vector<TensorGroup> groups;
  for (const char* name : {"weights", "averages", "optimizer"}) {
    TensorGroup group{name, {}, compression == Compression::all};
    if (group.name == "optimizer") group.packed |= compression == Compression::optimizer;
    for (size_t i = 0; i < state.entries().size(); ++i) {
      const StateEntry& entry = state.entries()[i];
      if (group_of(entry.role) == group.name && is_saved(state, static_cast<int>(i)))
        group.tensors.push_back(
            {entry.name, entry.type, nullptr, [&state, i](const NamedTensor::Take& take) {
               state.consume(static_cast<int>(i), Pieces::in_order,
                             [&](int64_t, std::span<const std::byte> piece) { take(piece); });
             }});
    }
    if (!group.tensors.empty() || group.name != "averages") groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace fullbore

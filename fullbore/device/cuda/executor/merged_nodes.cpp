#include "fullbore/device/cuda/executor/merged_nodes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

namespace fullbore::cuda {
namespace {

/// Those of one slot that become one.
struct Group {
  int slot = 0;
  std::vector<int> nodes;
};

// Nodes before a node in the longest chain that ends there.
std::vector<int> earliest_slots(std::span<const MergeableNode> nodes) {
  std::vector<int> slots(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const int before : nodes[i].follows)
      slots[i] = std::max(slots[i], slots[static_cast<size_t>(before)] + 1);
  return slots;
}

}  // namespace

// Every node gets a slot behind those of all that it follows; nodes of one slot do not follow one another. From the end: as
// late as what follows allows, or as the last slot where a group of the kind has room.
std::vector<std::vector<int>> merge_nodes(std::span<const MergeableNode> nodes) {
  const std::vector<int> earliest = earliest_slots(nodes);
  std::vector<int> latest(nodes.size(), nodes.empty() ? 0 : *std::ranges::max_element(earliest));
  std::vector<Group> groups;
  std::map<int, std::map<int, size_t>> with_room;  // by kind, then slot
  for (size_t i = nodes.size(); i-- > 0;) {
    const MergeableNode& node = nodes[i];
    int slot = latest[i];
    size_t group = groups.size();
    if (node.kind >= 0 && node.most > 1) {
      std::map<int, size_t>& of_kind = with_room[node.kind];
      const auto behind = of_kind.upper_bound(slot);
      if (behind != of_kind.begin() && std::prev(behind)->first >= earliest[i]) {
        slot = std::prev(behind)->first;
        group = std::prev(behind)->second;
      } else {
        of_kind[slot] = group;
      }
      if (group < groups.size() && static_cast<int>(groups[group].nodes.size()) + 1 == node.most)
        of_kind.erase(slot);
    }
    if (group == groups.size()) groups.push_back({slot, {}});
    groups[group].nodes.push_back(static_cast<int>(i));
    for (const int before : node.follows) {
      int& limit = latest[static_cast<size_t>(before)];
      limit = std::min(limit, slot - 1);
    }
  }
  for (Group& group : groups) std::ranges::reverse(group.nodes);
  std::ranges::sort(groups, [](const Group& a, const Group& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.nodes.front() < b.nodes.front();
  });
  std::vector<std::vector<int>> merged;
  for (Group& group : groups) merged.push_back(std::move(group.nodes));
  return merged;
}

}  // namespace fullbore::cuda

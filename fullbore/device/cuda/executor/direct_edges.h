#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace fullbore::cuda {

/// Edges of a graph without those that others imply. Nodes are numbered from 0 on and follow earlier ones alone.
class DirectEdges {
 public:
  using Candidates = std::set<int, std::greater<>>;

  /// Adds a node that has to follow the candidates. Returns those of them that no other of them follows, latest first.
  std::vector<int> add(const Candidates& candidates);
  int nodes() const { return static_cast<int>(followed_.size()); }

 private:
  std::vector<std::vector<uint64_t>>
      followed_;  ///< a bit for each that a node follows, by whichever way
};

}  // namespace fullbore::cuda

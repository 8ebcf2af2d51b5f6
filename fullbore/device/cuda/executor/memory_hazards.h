#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/direct_edges.h"

namespace fullbore::cuda {

/// Bytes [begin, end) of the card's memory that a node of a graph reads or writes.
struct MemoryAccess {
  uint64_t begin = 0, end = 0;
  bool is_written = false;
};

/// The same bytes in fewer pieces.
std::vector<MemoryAccess> joined(std::vector<MemoryAccess> accesses);

/// Which nodes have to follow which: one that touches bytes follows those that wrote them before, and one that writes bytes
/// those that read them too. Nodes are numbered from 0 on in the order in which the program has them.
class MemoryHazards {
 public:
  /// Adds a node. Returns those that it has to follow, without those that another of them follows already; latest first.
  std::vector<int> add(std::span<const MemoryAccess> accesses);

 private:
  /// Bytes from its key on that the same nodes have touched.
  struct Stretch {
    uint64_t end = 0;
    int writer = -1;           ///< the last, or -1
    std::vector<int> readers;  ///< since then
  };

  /// Cuts the stretch across `at`, if there is one, in two.
  void cut(uint64_t at);
  void read(const MemoryAccess& access, int node);
  void write(const MemoryAccess& access, int node);

  std::map<uint64_t, Stretch> stretches_;  ///< by their first byte
  DirectEdges edges_;
};

}  // namespace fullbore::cuda

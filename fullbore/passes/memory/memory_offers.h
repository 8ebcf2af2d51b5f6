#pragma once
#include <utility>
#include <vector>

#include "fullbore/passes/memory/memory_lowering.h"
#include "fullbore/passes/memory/node_order.h"

namespace fullbore {

/// A value that might be rematerialized (or later, if nobody reads it before), and what else must be.
struct MemoryOffer {
  Value root;
  /// Roots, that one first, each with the last node that reads its first making.
  std::vector<std::pair<Value, int>> rematerialized;
};

/// What can be given up where most memory is needed.
class MemoryOffers {
 public:
  MemoryOffers(const Graph& graph, const NodeOrder& order, Means means);

  /// Those that free most bytes for least work, best first: of n offers one in kShare, or one, but no
  /// more than `most`. By the order as it is arranged now; takes time in proportion to the graph.
  std::vector<MemoryOffer> best(size_t most);
  static constexpr size_t kShare = 64;

  /// Does not offer it any more.
  void withdraw(Value root) { withdrawn_[static_cast<size_t>(root.id)] = true; }
  /// Arithmetic of making the value once, in FLOPs, with what its bytes take.
  double work_of(Value root) const;

 private:
  /// What it would take to make some values again.
  struct Price {
    std::vector<std::pair<Value, int>> rematerialized;
    double work = 1;
    bool again = false;    ///< is any node executed twice?
    int64_t extended = 0;  ///< bytes that would have to live across the peak instead
  };
  /// A value between two reads, with a launch in between that needs most memory.
  struct Candidate {
    double bytes_per_work;
    size_t peak;  ///< the first such launch
    Value root;
    int last_read;  ///< the last node before it that reads the value, or -1
  };
  /// Where a value's first making was made or read last, as far as launches have been gone through.
  struct Seen {
    int launch = -1;
    int read_by = -1;  ///< the node of that read, or -1
  };

  void find_candidates();
  void consider(Value root, size_t next);
  bool add_price(Value root, int last_read, size_t peak, Price& price) const;

  const Graph& graph_;
  const NodeOrder& order_;
  const Means means_;
  std::vector<double> work_;       // per node
  std::vector<bool> withdrawn_;    // per value
  std::vector<size_t> next_peak_;  // per launch: itself or the first behind it that needs most
  std::vector<Seen> seen_;         // per value
  std::vector<Candidate> candidates_;
};

}  // namespace fullbore

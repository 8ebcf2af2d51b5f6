#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// A graph's nodes in the order in which they run, some of them twice, and the memory that this takes:
/// the planner's arena as far as it can be told without kernels. (No scratch memory, no gaps between
/// blocks; results and State made in place take none, as in plan/planner.h.)
///
/// A value and those that are the same bytes (Tag::identity) count as one: its root.
class NodeOrder {
 public:
  /// `carried`: of a loop's body, how many of its outputs are carried; -1 for a step.
  explicit NodeOrder(const Graph& graph, int carried = -1);

  /// One execution of a node.
  struct Execution {
    int node = 0;
    bool again = false;  ///< its second execution
    int at = 0;          ///< the node before which it takes place, or itself
  };
  const std::vector<Execution>& executions() const { return executions_; }
  /// Roots of the node's inputs, one each.
  std::span<const Value> operands(int node) const {
    const size_t first = first_operand_[static_cast<size_t>(node)];
    return {operands_.data() + first, first_operand_[static_cast<size_t>(node) + 1] - first};
  }

  /// What the body of loop `node` takes besides; 0 until said.
  void set_inner_bytes(int node, int64_t bytes) { inner_[static_cast<size_t>(node)] = bytes; }
  int64_t inner_bytes(int node) const { return inner_[static_cast<size_t>(node)]; }

  /// Nodes behind `last` read a second making of `root`, executed just before the first of them. What
  /// that reads is extended, or rematerialized too if it is to be. Where nobody reads the first making, it
  /// does not take place: the node is put off, not executed twice.
  void rematerialize(Value root, int last) { last_read_[static_cast<size_t>(root.id)] = last; }
  void keep(Value root) { rematerialize(root, kNever); }
  bool is_rematerialized(Value root) const { return last_read(root) != kNever; }
  /// The `last` of rematerialize().
  int last_read(Value root) const { return last_read_[static_cast<size_t>(root.id)]; }
  /// Is it the second making of `root` that a launch `at` reads?
  bool reads_again(Value root, int at) const { return at > last_read(root); }
  /// Brings launches, lives and bytes up to date with what is to be rematerialized.
  void arrange();

  Value root_of(Value value) const { return root_[static_cast<size_t>(value.id)]; }
  /// Of the first making: 0 for what is made in place as a result or as State.
  int64_t bytes_of(Value root) const { return bytes_[0][static_cast<size_t>(root.id)]; }
  /// Bytes alive at launch `i`.
  int64_t bytes_at(size_t i) const { return alive_[i]; }
  size_t peak() const;  ///< the first launch with the most
  int64_t peak_bytes() const { return alive_.empty() ? 0 : alive_[peak()]; }

  /// The launches that make and last read a root for the first time, or -1; last: the number of
  /// launches if it is an output.
  struct Life {
    int first = -1;
    int last = -1;
  };
  const Life& life(Value root) const { return lives_[0][static_cast<size_t>(root.id)]; }

 private:
  static constexpr int kNever = std::numeric_limits<int>::max();
  /// A node whose second execution waits for those of its operands.
  struct Pending {
    int node;
    size_t operand;  ///< the next one to look at
  };

  void find_roots();
  void find_bytes();
  void find_bytes_in_place();
  bool is_put_off(int node) const;
  void require_again(Value root, int at);
  void launch(int node, bool again, int at);
  void count_bytes();
  int64_t reused_bytes(const Execution& launch, int place) const;

  const Graph& graph_;
  const int carried_;
  std::vector<Value> root_;            // per value
  std::vector<Value> operands_;        // of all nodes
  std::vector<size_t> first_operand_;  // per node, and their number
  std::vector<int64_t> bytes_[2];      // per making, per value
  std::vector<int64_t> inner_;         // per node
  std::vector<int> last_read_;         // per value: the last node that reads its first making
  std::vector<bool> again_;            // per node: is its second execution arranged?
  std::vector<Pending> pending_;
  std::vector<Execution> executions_;
  std::vector<Life> lives_[2];  // per making, per value
  std::vector<int64_t> alive_;  // per launch
};

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <map>
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
  struct Launch {
    int node = 0;
    bool again = false;             ///< its second execution
    int at = 0;                     ///< the node before which it takes place, or itself
    std::vector<bool> reads_again;  ///< per input: is it the second making that is read?
  };
  const std::vector<Launch>& launches() const { return launches_; }

  /// What the body of loop `node` takes besides; 0 until said.
  void set_inner_bytes(int node, int64_t bytes) { inner_[static_cast<size_t>(node)] = bytes; }
  int64_t inner_bytes(int node) const { return inner_[static_cast<size_t>(node)]; }

  /// Nodes behind `last` read a second making of `root`, executed just before the first of them. What
  /// that reads is extended, or made again too if it is to be. Where nobody reads the first making, it
  /// does not take place: the node is put off, not executed twice.
  void make_again(Value root, int last) { last_read_[root] = last; }
  void keep(Value root) { last_read_.erase(root); }
  bool is_made_again(Value root) const { return last_read_.contains(root); }
  const std::map<Value, int>& made_again() const { return last_read_; }
  /// Brings launches, lives and bytes up to date with what is to be made again.
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
  void find_bytes();
  void find_bytes_in_place();
  bool reads_again(Value root, int at) const {
    const auto found = last_read_.find(root);
    return found != last_read_.end() && at > found->second;
  }
  bool is_put_off(int node) const;
  void require_again(Value root, int at);
  void launch(int node, bool again, int at);
  void count_bytes();
  int64_t reused_bytes(const Launch& launch, int place) const;

  const Graph& graph_;
  const int carried_;
  std::vector<Value> root_;         // per value
  std::vector<int64_t> bytes_[2];   // per making, per value
  std::vector<bool> is_output_;     // per value
  std::vector<int64_t> inner_;      // per node
  std::map<Value, int> last_read_;  // of roots made again: the last node that reads the first
  std::vector<bool> again_;         // per node: is its second execution arranged?
  std::vector<Launch> launches_;
  std::vector<Life> lives_[2];  // per making, per value
  std::vector<int64_t> alive_;  // per launch
};

}  // namespace fullbore

#pragma once
#include <optional>
#include <set>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/passes/fusion/fusion_space.h"

namespace fullbore {

/// The space in which nodes are computed together that are settled to be; nothing where one of them is not of it.
std::optional<FusionSpace> common_space(const Graph& graph, const std::vector<int>& members);

/// Which nodes of a graph are computed together.
class FusionGroups {
 public:
  explicit FusionGroups(const Graph& graph);
  /// Groups that are settled: of each node a number that the nodes of its group share, or -1 for a node alone. Each has
  /// a common space.
  FusionGroups(const Graph& graph, const std::vector<int>& numbers);

  /// The group of a node, named by its first member; a node that is not fused is alone in one.
  int group(int node) const { return group_[static_cast<size_t>(node)]; }
  const std::vector<int>& members(int group) const { return members_[static_cast<size_t>(group)]; }
  /// Of a group that is fused.
  bool is_fused(int group) const { return spaces_[static_cast<size_t>(group)].has_value(); }
  const FusionSpace& space(int group) const { return *spaces_[static_cast<size_t>(group)]; }
  /// Is the operand made of a value of the group, through reshapes and a repetition along rows?
  bool made_within(Value operand, int group) const;
  /// Is the value, also through reshapes and repetitions, read by the group alone?
  bool read_only_by(Value value, int group, int or_group = -1) const;
  /// Do fused groups alone read the value, also through what moves it?
  bool read_by_groups_alone(Value value) const;
  /// Does a slice or pad make the value that a group reads, which is as well cut out where it is read?
  bool is_cut_out(Value value, int group) const;
  /// The groups that read the value, also through reshapes, repetitions and what is cut out; nothing if
  /// something else reads it.
  std::optional<std::set<int>> reading_groups(Value value) const;
  /// Groups in an order in which every one comes after those that it reads from.
  std::vector<int> order() const;

 private:
  struct Candidate {
    int producer;
    int consumer;
  };
  void find_readers();
  void find_candidates();
  void try_to_join(const Candidate& candidate);
  std::optional<FusionSpace> joined_space(int producer, int consumer) const;
  /// Values that both together would read from and write to memory.
  size_t streams(int producer, int consumer) const;
  /// Does the consumer, with the producer in it, still read all that the producer makes?
  bool vanishes(int producer, int consumer) const;
  /// Groups that a group, joined with another or -1, reads from directly.
  std::vector<int> sources(int group, int joined_with) const;
  /// Does something outside of both depend on the producer and feed the consumer?
  bool path_around(int producer, int consumer) const;

  const Graph& graph_;
  std::vector<std::optional<FusionSpace>> spaces_;  // per group
  std::vector<int> group_;                          // per node
  std::vector<std::vector<int>> members_;           // per group, ascending
  std::vector<std::vector<int>> readers_;  // per value: nodes; fusible ones through what moves
  std::vector<bool> is_output_;            // per value: of the graph
  std::vector<Candidate> candidates_;
  /// Nodes behind which every group has either all of its members or none.
  std::set<int> borders_;
};

}  // namespace fullbore

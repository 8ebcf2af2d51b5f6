#include "fullbore/passes/fusion/fusion_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }
size_t at(int index) { return static_cast<size_t>(index); }

// Values that one kernel reads and writes in memory: devices have room for 64, and a loop over so many
// streams is slow anyway.
constexpr size_t kMostStreams = 48;

}  // namespace

// What is reduced says what the rows are that others have one number of.
std::optional<FusionSpace> common_space(const Graph& graph, const std::vector<int>& members) {
  const auto node = [&](int member) -> const Node& { return graph.nodes()[at(member)]; };
  const auto reduction = std::ranges::find_if(
      members, [&](int member) { return node(member).op->is(Tag::reduction); });
  const int leader = reduction == members.end() ? members.front() : *reduction;
  std::optional<FusionSpace> space = fusion_space(graph, node(leader));
  for (int member : members) {
    const std::optional<FusionSpace> own = fusion_space(graph, node(member));
    if (member != leader && space) space = own ? fit_together(*own, *space) : std::nullopt;
  }
  for (int member : members)
    for (Value operand : node(member).inputs) {
      const int maker = graph.producer(fusion_edge(graph, operand).from);
      const bool within = std::ranges::binary_search(members, maker);
      if (space && within && !admit(*space, graph, operand)) space.reset();
    }
  return space;
}

FusionGroups::FusionGroups(const Graph& graph)
    : graph_(graph),
      readers_(static_cast<size_t>(graph.value_count())),
      is_output_(static_cast<size_t>(graph.value_count()), false) {
  find_readers();
  find_candidates();
  // First where the value between the two vanishes, then where only a read of it is saved.
  for (const Candidate& candidate : candidates_) {
    const Value between = graph.nodes()[at(candidate.producer)].outputs[0];
    if (read_only_by(between, group(candidate.consumer))) try_to_join(candidate);
  }
  for (const Candidate& candidate : candidates_) try_to_join(candidate);
}

FusionGroups::FusionGroups(const Graph& graph, const std::vector<int>& numbers)
    : graph_(graph),
      readers_(static_cast<size_t>(graph.value_count())),
      is_output_(static_cast<size_t>(graph.value_count()), false) {
  find_readers();
  std::map<int, int> firsts;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) continue;
    const auto node = static_cast<int>(i);
    group_[i] = firsts.try_emplace(numbers[i], node).first->second;
    if (group_[i] == node) continue;
    members_[i].clear();
    members_[at(group_[i])].push_back(node);
  }
  for (const auto& [number, first] : firsts)
    spaces_[at(first)] = common_space(graph, members_[at(first)]);
}

// Each node is a group by itself.
void FusionGroups::find_readers() {
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    spaces_.push_back(fusion_space(graph_, graph_.nodes()[i]));
    group_.push_back(static_cast<int>(i));
    members_.push_back({static_cast<int>(i)});
    borders_.insert(borders_.end(), static_cast<int>(i));
    for (Value operand : graph_.nodes()[i].inputs)
      readers_[place(spaces_[i] ? fusion_edge(graph_, operand).from : operand)].push_back(
          static_cast<int>(i));
  }
  for (const Graph::Output& output : graph_.outputs()) is_output_[place(output.value)] = true;
}

void FusionGroups::find_candidates() {
  for (size_t i = 0; i < graph_.nodes().size(); ++i)
    for (Value operand : graph_.nodes()[i].inputs) {
      const int producer = graph_.producer(fusion_edge(graph_, operand).from);
      if (spaces_[i] && producer >= 0 && spaces_[at(producer)])
        candidates_.push_back({producer, static_cast<int>(i)});
    }
}

bool FusionGroups::made_within(Value operand, int group) const {
  const int maker = graph_.producer(fusion_edge(graph_, operand).from);
  return maker >= 0 && group_[at(maker)] == group;
}

bool FusionGroups::read_only_by(Value value, int group, int or_group) const {
  if (is_output_[place(value)]) return false;
  const std::vector<int>& readers = readers_[place(value)];
  return std::all_of(readers.begin(), readers.end(), [&](int reader) {
    // Groups read through what only moves the value; somebody else may read the moved value.
    const Node& node = graph_.nodes()[at(reader)];
    if (node.op->is(Tag::identity) || node.op == op::broadcast_to)
      return read_only_by(node.outputs[0], group, or_group);
    return this->group(reader) == group || this->group(reader) == or_group;
  });
}

bool FusionGroups::read_by_groups_alone(Value value) const {
  if (is_output_[place(value)]) return false;
  const std::vector<int>& readers = readers_[place(value)];
  return std::all_of(readers.begin(), readers.end(), [&](int reader) {
    const Node& node = graph_.nodes()[at(reader)];
    return spaces_[at(reader)].has_value() ||
           (node.op->is(Tag::movement) && node.inputs.size() == 1 &&
            read_by_groups_alone(node.outputs[0]));
  });
}

// Where neighbours would be read one by one it is made once for all of them: of every other element, and behind a reshape that
// does not keep the last axis whole.
bool FusionGroups::is_cut_out(Value value, int group) const {
  const Node* maker = graph_.producer_node(value);
  const Node* cut = maker;
  while (cut && cut->op->is(Tag::identity)) cut = graph_.producer_node(cut->inputs[0]);
  if (!cut || (cut->op != op::slice && cut->op != op::pad)) return false;
  if (cut == maker && read_only_by(cut->outputs[0], group)) return true;
  const Shape& shape = graph_.type(cut->outputs[0]).shape;
  const bool of_last = cut->attributes.get<int64_t>("axis") == shape.rank() - 1;
  if (of_last && cut->op == op::slice && cut->attributes.get<int64_t>("stride") != 1) return false;
  if (cut != maker && (of_last || !fits(space(group), shape))) return false;
  return read_by_groups_alone(cut->outputs[0]);
}

std::optional<std::set<int>> FusionGroups::reading_groups(Value value) const {
  if (is_output_[place(value)]) return std::nullopt;
  std::set<int> groups;
  for (int reader : readers_[place(value)]) {
    const Node& node = graph_.nodes()[at(reader)];
    if (spaces_[at(group(reader))]) {
      groups.insert(group(reader));
      continue;
    }
    const bool cuts = node.op == op::slice || node.op == op::pad;
    if (!cuts && !node.op->is(Tag::identity) && node.op != op::broadcast_to) return std::nullopt;
    const Value moved = node.outputs[0];
    const std::optional<std::set<int>> behind = reading_groups(moved);
    if (!behind) return std::nullopt;
    // What is cut out and reshaped then may be made apart from its readers.
    if (cuts && !std::ranges::all_of(readers_[place(moved)],
                                     [&](int of_cut) { return spaces_[at(of_cut)].has_value(); }))
      return std::nullopt;
    for (int reading : *behind) {
      if (cuts && !is_cut_out(moved, reading)) return std::nullopt;
      groups.insert(reading);
    }
  }
  return groups;
}

bool FusionGroups::vanishes(int producer, int consumer) const {
  return std::all_of(members_[at(producer)].begin(), members_[at(producer)].end(), [&](int member) {
    return read_only_by(graph_.nodes()[at(member)].outputs[0], producer, consumer);
  });
}

std::optional<FusionSpace> FusionGroups::joined_space(int producer, int consumer) const {
  std::optional<FusionSpace> space = join(*spaces_[at(producer)], *spaces_[at(consumer)]);
  if (!space) return std::nullopt;
  for (int member : members_[at(consumer)])
    for (Value operand : graph_.nodes()[at(member)].inputs)
      if (made_within(operand, producer) && !admit(*space, graph_, operand)) return std::nullopt;
  return space;
}

size_t FusionGroups::streams(int producer, int consumer) const {
  std::set<Value> values;
  for (int group : {producer, consumer})
    for (int member : members_[at(group)]) {
      const Node& node = graph_.nodes()[at(member)];
      if (!read_only_by(node.outputs[0], producer, consumer)) values.insert(node.outputs[0]);
      for (Value operand : node.inputs) {
        const Value from = fusion_edge(graph_, operand).from;
        const Node* maker = graph_.producer_node(from);
        if (maker && maker->op->is(Tag::source)) continue;  // evaluated inside
        if (!made_within(operand, producer) && !made_within(operand, consumer)) values.insert(from);
      }
    }
  return values.size();
}

void FusionGroups::try_to_join(const Candidate& candidate) {
  const int producer = group(candidate.producer), consumer = group(candidate.consumer);
  if (producer == consumer) return;
  if (spaces_[at(consumer)]->columns && !vanishes(producer, consumer)) return;
  const std::optional<FusionSpace> space = joined_space(producer, consumer);
  if (!space || streams(producer, consumer) > kMostStreams || path_around(producer, consumer))
    return;
  std::vector<int> both;
  std::merge(members_[at(producer)].begin(), members_[at(producer)].end(),
             members_[at(consumer)].begin(), members_[at(consumer)].end(),
             std::back_inserter(both));
  members_[at(producer)].clear();
  members_[at(consumer)].clear();
  const int joined = both.front();
  for (int member : both) group_[at(member)] = joined;
  spaces_[at(joined)] = space;
  borders_.erase(borders_.lower_bound(joined), borders_.lower_bound(both.back()));
  members_[at(joined)] = std::move(both);
}

std::vector<int> FusionGroups::sources(int group, int joined_with) const {
  std::set<int> found;
  const bool fusible = spaces_[at(group)].has_value();
  for (int member : members_[at(group)])
    for (Value operand : graph_.nodes()[at(member)].inputs) {
      const int maker = graph_.producer(operand);
      if (maker < 0 ||
          (fusible && (made_within(operand, group) || made_within(operand, joined_with))))
        continue;
      found.insert(group_[at(maker)]);
    }
  return {found.begin(), found.end()};
}

bool FusionGroups::path_around(int producer, int consumer) const {
  const int first = members_[at(producer)].front();
  std::vector<int> waiting = sources(consumer, producer);
  std::set<int> seen(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    const int next = waiting.back();
    waiting.pop_back();
    // Nothing whose last member comes before a border before the producer's first depends on it.
    const auto border = borders_.lower_bound(members_[at(next)].back());
    if (border != borders_.end() && *border < first) continue;
    for (int source : sources(next, -1)) {
      if (source == producer) return true;
      if (seen.insert(source).second) waiting.push_back(source);
    }
  }
  return false;
}

std::vector<int> FusionGroups::order() const {
  std::vector<int> unmet(members_.size(), 0);
  std::vector<std::vector<int>> readers(members_.size());
  // Earliest last member first: as near to the given order as can be.
  std::set<std::pair<int, int>> ready;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].empty()) continue;
    const std::vector<int> from = sources(static_cast<int>(i), -1);
    unmet[i] = static_cast<int>(from.size());
    for (int source : from) readers[at(source)].push_back(static_cast<int>(i));
    if (from.empty()) ready.insert({members_[i].back(), static_cast<int>(i)});
  }
  std::vector<int> result;
  while (!ready.empty()) {
    const int next = ready.begin()->second;
    ready.erase(ready.begin());
    result.push_back(next);
    for (int reader : readers[at(next)])
      if (--unmet[at(reader)] == 0) ready.insert({members_[at(reader)].back(), reader});
  }
  return result;
}

}  // namespace fullbore

#include "fullbore/train/shard_count.h"

#include <algorithm>
#include <numeric>

#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

// Of a forward pass, by one shard: what a hundred tokens do with a weight of a product, or two thousand where gradients
// are too large for caches. To write and read them once more for each shard, and weights by each crew, is then less
// than shards gain. (GPT-2 124M at 1024 tokens a shard: 2 % slower than whole; 10.7 M parameters at 8192: 3 % faster;
// 0.1 to 3.6 M at 128 to 2048: 3 to 58 %.)
constexpr double kFewestFlops = 200, kFewestFarFlops = 4000;
constexpr double kNearBytes = 32 << 20;

// What the first axes of all fields have in common; 0: they are not the batch.
int64_t rows_of(const std::vector<std::vector<BatchField>>& shapes) {
  int64_t rows = 0;
  for (const std::vector<BatchField>& shape : shapes) {
    const Shape& first = shape.front().type.shape;
    for (const BatchField& field : shape)
      if (first.rank() == 0 || (field.type.shape.rank() > 0 && field.type.shape[0] != first[0]))
        return 0;
    rows = std::gcd(rows, first[0]);
  }
  return rows;
}

bool depends_on_parameters(const Graph& graph, Value value) {
  std::vector<Value> open = {value};
  std::vector<bool> seen(static_cast<size_t>(graph.value_count()), false);
  while (!open.empty()) {
    const Value next = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(next.id)]) continue;
    seen[static_cast<size_t>(next.id)] = true;
    if (const Node* node = graph.producer_node(next))
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    else if (const auto input = std::ranges::find(graph.inputs(), next, &Graph::Input::value);
             input != graph.inputs().end() && input->role == Role::parameter)
      return true;
  }
  return false;
}

bool pays(const LossFunction& loss, const std::vector<BatchField>& fields, int64_t parts) {
  Trace trace("rehearsal", true);
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(trace.batch(field.name, field.type));
  const Loss found = loss(trace, batch);
  if (trace.has_outputs() || !found.carried.empty()) return false;
  const Graph& graph = trace.builder().graph();
  for (const LossTerm& term : found.terms)
    if (depends_on_parameters(graph, term.weight.value())) return false;
  double parameters = 0;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::parameter)
      parameters += static_cast<double>(graph.type(input.value).elements());
  const double fewest = 4 * parameters <= kNearBytes ? kFewestFlops : kFewestFarFlops;
  return graph_cost(graph).flops >= fewest * parameters * static_cast<double>(parts);
}

}  // namespace

int64_t shard_count(const LossFunction& loss, const std::vector<std::vector<BatchField>>& shapes,
                    int64_t accumulate, int workers) {
  const int64_t rows = rows_of(shapes);
  if (rows % accumulate != 0) return 1;
  const int64_t shards = std::gcd(rows / accumulate, int64_t{workers});
  if (rows == 0 || shards < 2) return 1;
  const std::vector<BatchField>& largest = *std::ranges::max_element(
      shapes, {},
      [](const std::vector<BatchField>& shape) { return shape.front().type.shape.elements(); });
  return pays(loss, largest, accumulate * shards) ? shards : 1;
}

}  // namespace fullbore

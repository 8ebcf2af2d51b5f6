#include "fullbore/train/shard_count.h"

#include <algorithm>
#include <numeric>

#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

// Of a forward pass, by one shard: what a hundred tokens do with a weight of a product. Gradients that are written and
// read once more for each shard are then a few hundredths of its time.
constexpr double kFewestFlopsPerParameter = 200;

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
  return graph_cost(graph).flops >=
         kFewestFlopsPerParameter * parameters * static_cast<double>(parts);
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

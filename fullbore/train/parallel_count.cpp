#include "fullbore/train/parallel_count.h"

#include <algorithm>
#include <numeric>

#include "fullbore/ir/op_def.h"
#include "fullbore/train/batch_rows.h"

namespace fullbore {
namespace {

// Of a forward pass, by one microbatch: what a hundred tokens do with a weight of a matmul, or two thousand where
// gradients are too large for caches. To write and read them once more for each microbatch, and weights by each thread
// group, is then less than microbatches gain. (GPT-2 124M at 1024 tokens a microbatch: 2 % slower than whole; 10.7 M
// parameters at 8192: 3 % faster; 0.1 to 3.6 M at 128 to 2048: 3 to 58 %. LatentWire through a frozen model of 135 M,
// 392 rows: two microbatches take 7 % less time than four and 11 to 13 % less than one.)
constexpr double kFewestFlops = 200, kFewestFarFlops = 4000;
// Four microbatches write twice as many gradients as two: on two workers that costs 4 % at 190 tokens a microbatch and
// 3 % at 510, and nothing on one (bench/results/2026-11-24-shards-by-job.txt). Four workers need four microbatches, so
// they are made where each is large.
constexpr double kManyParallel = 5;
constexpr double kNearBytes = 32 << 20;

// What the batches of all shapes have in common; 0: they cannot be cut.
int64_t rows_of(const std::vector<std::vector<BatchField>>& shapes) {
  int64_t rows = 0;
  for (const std::vector<BatchField>& shape : shapes) {
    const int64_t own = cut_axis(shape.front()) < 0 ? 0 : common_rows(shape);
    if (own == 0) return 0;
    rows = std::gcd(rows, own);
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

/// What the loss does in its forward pass with each of its weights, frozen ones too, in flops; less than 0: it cannot
/// be cut.
struct Work {
  double flops = -1;
  bool is_near = true;  ///< are gradients small enough for caches?
};

Work work_of(const LossFunction& loss, const std::vector<BatchField>& fields) {
  Trace trace("rehearsal", true);
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(trace.batch(field.name, field.type));
  const Loss found = loss(trace, batch);
  if (trace.has_outputs() || !found.carried.empty()) return {};
  const Graph& graph = trace.builder().graph();
  for (const LossTerm& term : found.terms)
    if (depends_on_parameters(graph, term.weight.value())) return {};
  double parameters = 0, frozen = 0;
  for (const Graph::Input& input : graph.inputs()) {
    const auto elements = static_cast<double>(graph.type(input.value).elements());
    if (input.role == Role::parameter) parameters += elements;
    if (input.role == Role::frozen) frozen += elements;
  }
  // Frozen weights have no gradients, but each microbatch reads them.
  return {graph_cost(graph).flops / std::max(1.0, parameters + frozen),
          4 * parameters <= kNearBytes};
}

}  // namespace

int64_t parallel_count(const LossFunction& loss, const std::vector<std::vector<BatchField>>& shapes,
                       int64_t accumulate) {
  return parallel_counts(loss, shapes, accumulate).front();
}

std::vector<int64_t> parallel_counts(const LossFunction& loss,
                                     const std::vector<std::vector<BatchField>>& shapes,
                                     int64_t accumulate) {
  const int64_t rows = rows_of(shapes);
  if (rows == 0 || rows % accumulate != 0 || rows / accumulate % 2 != 0) return {1};
  const std::vector<BatchField>& largest = *std::ranges::max_element(
      shapes, {},
      [](const std::vector<BatchField>& shape) { return shape.front().type.shape.elements(); });
  const Work work = work_of(loss, largest);
  if (work.flops < 0) return {1};
  const double fewest = work.is_near ? kFewestFlops : kFewestFarFlops;
  const auto of_microbatch = [&](int64_t parallel) {
    return work.flops / static_cast<double>(accumulate * parallel);
  };
  if (rows / accumulate % 4 != 0)
    return of_microbatch(2) >= fewest ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{1, 2};
  if (of_microbatch(4) >= kManyParallel * fewest) return {4, 2, 1};
  return of_microbatch(2) >= fewest ? std::vector<int64_t>{2, 4, 1} : std::vector<int64_t>{1, 2, 4};
}

}  // namespace fullbore

#include "fullbore/train/evaluator.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/hash.h"
#include "fullbore/runtime/quantized_state.h"

namespace fullbore {
namespace {

struct WeightedMean {
  double sum = 0;
  double weight = 0;
  void add(double mean, double of) {
    if (of > 0) sum += mean * of;  // a mean of nothing may be anything
    weight += of;
  }
  double mean() const { return sum / weight; }
};

PreparedEvaluations prepare(std::vector<TracedStep> traced, const State& state,
                            const CompileOptions& options) {
  std::vector<const Graph*> graphs;
  for (TracedStep& step : traced) {
    step.graph = in_8_bits(step.graph, state);
    graphs.push_back(&step.graph);
  }
  return {traced.front().metrics, prepare_programs(graphs, state.device(), options)};
}

}  // namespace

std::vector<TracedStep> trace_evaluations(const LossFunction& loss, const ValidationSet& set,
                                          Weights weights) {
  std::vector<TracedStep> traced;
  for (const std::vector<BatchField>& shape : set.source->shapes())
    traced.push_back(trace_evaluation(loss, shape, weights));
  for (TracedStep& step : traced) step.graph = with_recurrent_states_given(step.graph);
  return traced;
}

Evaluator::Evaluator(const LossFunction& loss, const ValidationSet& set, State& state,
                     const CompileOptions& options, Weights weights)
    : Evaluator(set, prepare(trace_evaluations(loss, set, weights), state, options), state,
                std::make_shared<Arena>(state.device())) {}

// No worker threads for the batches: they are few and small, and the next run is seldom near.
Evaluator::Evaluator(ValidationSet set, PreparedEvaluations prepared, State& state,
                     const std::shared_ptr<Arena>& arena)
    : set_(std::move(set)),
      metrics_(std::move(prepared.metrics)),
      loader_(set_.source, {.workers = 0, .prefetch = 1}) {
  FB_CHECK(set_.batches > 0, "an empty validation set");
  for (PreparedProgram& program : prepared.programs) {
    programs_.push_back(Program::bind(std::move(program), state, arena));
    add_sequences(programs_.back());
  }
  FB_CHECK(set_.judge.empty() || std::ranges::find(metrics_, set_.judge) != metrics_.end(),
           "no metric '{}'", set_.judge);
}

std::vector<const Plan*> Evaluator::plans() const {
  std::vector<const Plan*> plans;
  for (const Program& program : programs_) plans.push_back(&program.plan());
  return plans;
}

void Evaluator::add_sequences(const Program& program) {
  const Graph& graph = program.plan().graph;
  std::vector<int> results;
  size_t inputs = 0;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::batch || ++inputs <= set_.source->fields().size()) continue;
    const int64_t bytes = graph.type(input.value).bytes();
    if (results.size() == sequences_.memory.size()) {
      sequences_.memory.push_back(allocate_tensor_memory(bytes));
      sequences_.bytes.push_back(bytes);
      if (!sequences_.memory.back()) throw std::bad_alloc();
    }
    FB_CHECK(sequences_.bytes[results.size()] == bytes, "'{}' differs from shape to shape",
             input.name);
    results.push_back(graph.find_output(input.name));
  }
  sequences_.results.push_back(std::move(results));
}

void Evaluator::run(uint64_t position, std::span<const void* const> batch) {
  const size_t shape = set_.source->shape_at(position);
  std::vector<const void*> inputs(batch.begin(), batch.end());
  for (const TensorMemory& memory : sequences_.memory) inputs.push_back(memory.get());
  programs_[shape].run(inputs);
  for (size_t i = 0; i < sequences_.memory.size(); ++i)
    if (sequences_.results[shape][i] >= 0)
      programs_[shape].read_result(sequences_.results[shape][i],
                                   {reinterpret_cast<std::byte*>(sequences_.memory[i].get()),
                                    static_cast<size_t>(sequences_.bytes[i])});
}

uint64_t Evaluator::hash_of(uint64_t position, std::span<const void* const> batch) const {
  const std::vector<std::vector<BatchField>> shapes = set_.source->shapes();
  const std::vector<BatchField>& fields = shapes[set_.source->shape_at(position)];
  uint64_t hash = 0;
  for (size_t i = 0; i < fields.size(); ++i)
    hash = hash_bytes(batch[i], static_cast<size_t>(fields[i].type.bytes()), hash);
  return hash;
}

std::optional<Evaluation> Evaluator::evaluate(
    const std::function<bool(uint64_t done)>& go_on,
    const std::function<void(const EvaluatedBatch&)>& each) {
  WeightedMean loss;
  std::vector<WeightedMean> metrics(metrics_.size());
  loader_.seek(0);
  for (size_t i = 0; i < sequences_.memory.size(); ++i)
    std::memset(sequences_.memory[i].get(), 0, static_cast<size_t>(sequences_.bytes[i]));
  for (uint64_t position = 0; position < set_.batches; ++position) {
    if (!go_on(position)) return std::nullopt;
    const Program& program = programs_[set_.source->shape_at(position)];
    const std::span<const void* const> batch = loader_.next();
    EvaluatedBatch told;
    if (each) told.hash = hash_of(position, batch);
    run(position, batch);
    const bool tells = program.plan().graph.find_output("predictions") >= 0;
    const double weight = tells ? program.scalar("predictions") : 1;
    loss.add(program.scalar("loss"), weight);
    for (size_t i = 0; i < metrics_.size(); ++i) {
      const std::string own = metric_weight_name(metrics_[i]);
      const bool has_weight = program.plan().graph.find_output(own) >= 0;
      const double of = has_weight ? program.scalar(own) : weight;
      metrics[i].add(program.scalar(metrics_[i]), of);
      if (!each) continue;
      told.metrics.push_back(program.scalar(metrics_[i]));
      told.weights.push_back(of);
    }
    if (!each) continue;
    told.loss = program.scalar("loss");
    told.predictions = weight;
    each(told);
  }
  Evaluation result{loss.mean(), loss.weight, {}, loss.mean()};
  for (size_t i = 0; i < metrics_.size(); ++i) {
    result.metrics.emplace_back(metrics_[i], metrics[i].mean());
    if (metrics_[i] == set_.judge) result.score = -metrics[i].mean();
  }
  return result;
}

}  // namespace fullbore

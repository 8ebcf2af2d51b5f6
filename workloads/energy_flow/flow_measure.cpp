#include "workloads/energy_flow/flow_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "workloads/energy_flow/batch_program.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/surface_mapper.h"

namespace fullbore::energy_flow {
namespace {

constexpr int64_t kMeanBatch = 64;
// A product of squared lengths below it is that of a surface that is 0.
constexpr double kLeastSquares = 1e-30;

constexpr std::array<std::string_view, kFlowScores> kNames = {
    "model_error", "input_error", "mean_error", "model_cosine", "input_cosine", "mean_cosine"};

MapperWeights mapper_of(Trace& trace, const Config& config) {
  const EnergyKeys& keys = energy_keys(config);
  return declare_mapper(trace, keys.model.embedding_width, keys.lattice.width * keys.lattice.height,
                        keys.model.train_mapper);
}

TensorType embeddings(const Config& config, int64_t batch) {
  return {DType::f32, {batch, energy_keys(config).model.embedding_width}};
}

/// Targets [B, W] to surfaces [B, S].
Graph trace_targets(const Config& config, int64_t batch) {
  Trace trace("targets", false);
  const Tensor target = trace.batch("target", embeddings(config, batch));
  trace.result("surface", map_to_surface(mapper_of(trace, config), target));
  return trace.finish();
}

/// Means over cells: [B] of [B, S].
Tensor mean_square(Tensor difference) { return reduce_mean(difference * difference, {1}); }

Tensor cosine(Tensor surface, Tensor target) {
  const auto squares = [](Tensor x) { return reduce_sum(x * x, {1}); };
  const Tensor lengths = sqrt(maximum(squares(surface) * squares(target), kLeastSquares));
  return reduce_sum(surface * target, {1}) / lengths;
}

Graph trace_measure(const Config& config, const LatticeOptions& lattice, int64_t batch,
                    std::vector<std::string>& causes) {
  Trace trace("measure", false);
  const Tensor input = trace.batch("input", embeddings(config, batch));
  const Tensor target_embedding = trace.batch("target", embeddings(config, batch));
  const Tensor mean = trace.batch("mean", {DType::f32, {1, lattice.surface()}});
  const MapperWeights mapper = mapper_of(trace, config);
  const Tensor start = map_to_surface(mapper, input);
  const Tensor target = map_to_surface(mapper, target_embedding);
  const FlowRun run = trained_flows(trace, config, lattice, start);
  causes = run.causes;
  const Tensor everywhere = mean + target * 0.0;  // [B, S]
  const std::array<Tensor, kFlowScores> scores = {
      mean_square(run.surface - target), mean_square(start - target), mean_square(mean - target),
      cosine(run.surface, target),       cosine(start, target),       cosine(everywhere, target)};
  for (size_t i = 0; i < kFlowScores; ++i)
    trace.result(std::string(kNames[i]), cast(scores[i], DType::f32));
  trace.result("counts", run.counts);
  trace.result("executed", run.executed);
  trace.result("created", run.created);
  trace.result("dropped", run.dropped);
  trace.result("projected_on_stop", run.projected_on_stop);
  trace.result("active", run.active);
  return trace.finish();
}

/// Of whole batches, and of what is left behind them.
class ProgramsBySize {
 public:
  ProgramsBySize(TrainedFlows& model, std::function<Graph(int64_t batch)> trace)
      : model_(model),
        trace_(std::move(trace)),
        arena_(std::make_shared<Arena>(model.state.device())) {}

  BatchProgram& of(int64_t batch) {
    const auto known = programs_.find(batch);
    if (known != programs_.end()) return known->second;
    return programs_.try_emplace(batch, trace_(batch), model_.state, model_.config, arena_)
        .first->second;
  }

 private:
  TrainedFlows& model_;
  std::function<Graph(int64_t)> trace_;
  std::shared_ptr<Arena> arena_;
  std::map<int64_t, BatchProgram> programs_;
};

void add_population(const BatchProgram& program, const LatticeOptions& lattice, int64_t batch,
                    const std::vector<std::string>& causes, Population& all) {
  const auto counts = program.result<int64_t>("counts");
  const size_t columns = static_cast<size_t>(kFlowCounts) + causes.size();
  for (size_t step = 0; step < all.by_step.size(); ++step)
    for (size_t column = 0; column < columns; ++column)
      all.by_step[step][column] += counts[step * columns + column];
  const auto total = [&](size_t column) {
    int64_t sum = 0;
    for (size_t at = column; at < counts.size(); at += columns) sum += counts[at];
    return sum;
  };
  const int64_t wanted = batch * lattice.surface();
  all.injected += std::min(wanted, lattice.capacity);
  all.not_injected += wanted - std::min(wanted, lattice.capacity);
  all.created += program.number("created");
  all.dropped += program.number("dropped");
  all.spawned += total(static_cast<size_t>(FlowCount::made));
  all.exits += total(static_cast<size_t>(FlowCount::exits));
  all.projected += total(static_cast<size_t>(FlowCount::projected));
  all.projected_on_stop += program.number("projected_on_stop");
  if (!lattice.project_on_stop) all.active += program.number("active");
  for (size_t i = 0; i < causes.size(); ++i)
    all.dead[i].second += total(static_cast<size_t>(FlowCount::dead) + i);
}

}  // namespace

std::string_view flow_score_name(FlowScore score) { return kNames[static_cast<size_t>(score)]; }

int64_t Population::died() const {
  int64_t sum = 0;
  for (const auto& [cause, count] : dead) sum += count;
  return sum;
}

double Population::completed_share() const {
  return created > 0 ? static_cast<double>(exits + projected) / static_cast<double>(created) : 0;
}

int64_t Population::unaccounted() const {
  return created - exits - projected - projected_on_stop - died() - active;
}

TrainedFlows load_flows(const std::string& run_or_checkpoint, bool tells) {
  const OpenedCheckpoint checkpoint = open_checkpoint(run_or_checkpoint);
  const std::string& path = checkpoint.folder.path();
  Config config = stored_config(checkpoint, tells);
  if (config.model.name != "energy_flow")
    throw UsageError(
        fmt::format("{} is of a {} model, not of model.name=energy_flow", path, config.model.name));
  choose_processor(config);
  choose_caches(config);
  LatticeOptions small = lattice_options(config);
  small.capacity = std::max(small.capacity, small.surface());
  std::vector<std::string> causes;
  const Graph graph = trace_measure(config, small, 1, causes);
  State state = trained_state(checkpoint, config, trained_entries(checkpoint, graph),
                              open_job_device(config));
  return {path, checkpoint.record.step, std::move(config), std::move(state)};
}

std::vector<float> mean_target_surface(TrainedFlows& model, const PairRange& training) {
  FB_CHECK(training.count > 0, "no pairs");
  ProgramsBySize programs(model, [&](int64_t batch) { return trace_targets(model.config, batch); });
  const EmbeddingPairs& pairs = *training.pairs;
  std::vector<double> sums;
  for (int64_t done = 0; done < training.count;) {
    const int64_t batch = std::min(kMeanBatch, training.count - done);
    BatchProgram& program = programs.of(batch);
    for (int64_t row = 0; row < batch; ++row)
      program.set(0, row, pairs.target(training.first + done + row), pairs.width());
    program.run();
    const auto surfaces = program.result<float>("surface");
    sums.resize(surfaces.size() / static_cast<size_t>(batch));
    for (size_t i = 0; i < surfaces.size(); ++i)
      sums[i % sums.size()] += static_cast<double>(surfaces[i]);
    done += batch;
  }
  std::vector<float> means;
  for (const double sum : sums)
    means.push_back(static_cast<float>(sum / static_cast<double>(training.count)));
  return means;
}

FlowMeasure measure_flows(TrainedFlows& model, const LatticeOptions& lattice,
                          const PairRange& examples, int64_t batch,
                          const std::vector<float>& mean_surface, const MeasureProgress& progress) {
  FB_CHECK(examples.count > 0 && batch > 0, "{} pairs by {}", examples.count, batch);
  std::vector<std::string> causes;
  ProgramsBySize programs(
      model, [&](int64_t rows) { return trace_measure(model.config, lattice, rows, causes); });
  const EmbeddingPairs& pairs = *examples.pairs;
  FlowMeasure measure;
  Population& population = measure.population;
  for (int64_t done = 0; done < examples.count;) {
    if (progress) progress(done);
    const int64_t rows = std::min(batch, examples.count - done);
    BatchProgram& program = programs.of(rows);
    if (done == 0) {
      for (const std::string& cause : causes) population.dead.emplace_back(cause, 0);
      const size_t columns = static_cast<size_t>(kFlowCounts) + causes.size();
      population.by_step.assign(static_cast<size_t>(lattice.most_steps()),
                                std::vector<int64_t>(columns));
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t pair = examples.first + done + row;
      program.set(0, row, pairs.input(pair), pairs.width());
      program.set(1, row, pairs.target(pair), pairs.width());
    }
    program.set(2, 0, mean_surface.data(), std::ssize(mean_surface));
    program.run();
    for (size_t i = 0; i < kFlowScores; ++i)
      for (const float value : program.result<float>(kNames[i]))
        measure.scores[i].push_back(static_cast<double>(value));
    add_population(program, lattice, rows, causes, population);
    measure.steps += static_cast<double>(program.number("executed")) * static_cast<double>(rows);
    done += rows;
  }
  measure.steps /= static_cast<double>(examples.count);
  return measure;
}

}  // namespace fullbore::energy_flow

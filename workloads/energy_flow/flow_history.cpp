#include "workloads/energy_flow/flow_history.h"

#include <algorithm>
#include <map>

#include "fullbore/base/check.h"
#include "workloads/energy_flow/batch_program.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/surface_mapper.h"

namespace fullbore::energy_flow {
namespace {

// A capacity is for a whole batch. No picture shows as many flows of a pair.
constexpr int64_t kMostFlows = 16384;

LatticeOptions options_of_one(const Config& config) {
  LatticeOptions lattice = lattice_options(config);
  lattice.capacity = std::min(lattice.capacity, std::max(kMostFlows, 2 * lattice.surface()));
  lattice.tracks = true;
  return lattice;
}

Graph trace_history(const Config& config, const LatticeOptions& lattice,
                    std::vector<std::string>& causes) {
  const EnergyKeys::Model& keys = energy_keys(config).model;
  Trace trace("history", false);
  const TensorType type{DType::f32, {1, keys.embedding_width}};
  const Tensor input = trace.batch("input", type), target = trace.batch("target", type);
  const MapperWeights mapper =
      declare_mapper(trace, keys.embedding_width, lattice.surface(), keys.train_mapper);
  const Tensor start = map_to_surface(mapper, input);
  const FlowRun run = trained_flows(trace, config, lattice, start);
  causes = run.causes;
  const auto numbers = [&](const char* name, Tensor x) { trace.result(name, cast(x, DType::f32)); };
  numbers("start", start);
  numbers("surface", run.surface);
  numbers("aim", map_to_surface(mapper, target));
  numbers("from", run.tracks.from);
  numbers("to", run.tracks.to);
  numbers("energy", run.tracks.energy);
  trace.result("alive", cast(run.tracks.alive, DType::i32));
  trace.result("id", run.tracks.id);
  trace.result("fate", run.tracks.fate);
  trace.result("counts", run.counts);
  trace.result("executed", run.executed);
  trace.result("dropped", run.dropped);
  trace.result("projected_on_stop", run.projected_on_stop);
  return trace.finish();
}

std::vector<double> doubles(const BatchProgram& program, const char* name) {
  const auto values = program.result<float>(name);
  return {values.begin(), values.end()};
}

/// Of a normalised place, or of one in cells already.
std::array<double, 3> in_cells(const FlowHistory& history, const float* place) {
  const auto of = [&](size_t axis, int64_t extent) {
    const auto value = static_cast<double>(place[axis]);
    if (history.mode == FlowMode::absolute) return value;
    return (value + 1) / 2 * static_cast<double>(extent);
  };
  return {of(0, history.width - 1), of(1, history.height - 1), of(2, history.depth)};
}

void read_paths(const BatchProgram& program, FlowHistory& history) {
  const auto alive = program.result<int32_t>("alive"), fate = program.result<int32_t>("fate");
  const auto id = program.result<int64_t>("id");
  const auto from = program.result<float>("from"), to = program.result<float>("to"),
             energy = program.result<float>("energy");
  constexpr auto kDied = static_cast<int32_t>(FlowFate::died);
  std::map<int64_t, FlowPath> paths;
  const size_t capacity = alive.size() / std::max<size_t>(1, history.by_step.size());
  for (int64_t step = 0; step < history.steps; ++step)
    for (size_t row = 0; row < capacity; ++row) {
      const size_t at = static_cast<size_t>(step) * capacity + row;
      if (alive[at] == 0) continue;
      FlowPath& path = paths[id[at]];
      if (path.places.empty()) {
        path.id = id[at];
        path.born = step;
        path.places.push_back(in_cells(history, &from[3 * at]));
      }
      path.places.push_back(in_cells(history, &to[3 * at]));
      path.energies.push_back(static_cast<double>(energy[at]));
      path.fate = static_cast<FlowFate>(std::min(fate[at], kDied));
      if (fate[at] > kDied) path.cause = static_cast<size_t>(fate[at] - kDied);
    }
  for (auto& [number, path] : paths) history.paths.push_back(std::move(path));
}

}  // namespace

FlowHistory record_flows(TrainedFlows& model, const PairRange& examples, int64_t which) {
  FB_CHECK(which >= 0 && which < examples.count, "pair {} of {}", which, examples.count);
  const LatticeOptions lattice = options_of_one(model.config);
  FlowHistory history;
  BatchProgram program(trace_history(model.config, lattice, history.causes), model.state,
                       model.config);
  const EmbeddingPairs& pairs = *examples.pairs;
  const int64_t pair = examples.first + which;
  program.set(0, 0, pairs.input(pair), pairs.width());
  program.set(1, 0, pairs.target(pair), pairs.width());
  program.run();
  history.mode = lattice.mode;
  history.width = lattice.width;
  history.height = lattice.height;
  history.depth = lattice.depth;
  history.steps = program.number("executed");
  history.dropped = program.number("dropped");
  history.projected_on_stop = program.number("projected_on_stop");
  history.input = doubles(program, "start");
  history.output = doubles(program, "surface");
  history.target = doubles(program, "aim");
  const auto counts = program.result<int64_t>("counts");
  const size_t columns = static_cast<size_t>(kFlowCounts) + history.causes.size();
  for (size_t at = 0; at < counts.size(); at += columns)
    history.by_step.emplace_back(&counts[at], &counts[at] + columns);
  read_paths(program, history);
  history.by_step.resize(static_cast<size_t>(history.steps));
  return history;
}

}  // namespace fullbore::energy_flow

#include "workloads/energy_flow/flow_lattice.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ops/counted_rows.h"
#include "fullbore/ops/map_rows.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kAgeWeight = 0.1;
// Below it a linear merge takes all of a cell's records alike.
constexpr double kLeastImportance = 1e-12;
// Up to so many, of places and energies, which the merge reads of all rows.
constexpr int64_t kFewColumns = 3;

Tensor count_of(Tensor truths) { return reduce_sum(cast(truths, DType::i64), {0}); }

/// Sums over the records of each cell, [B S] each: what the value of a cell is made of.
struct Merge {
  Tensor weighted;  ///< of weight times energy
  Tensor weights;   ///< of weights
  Tensor energies;  ///< linear: of energies, for cells whose weights vanish
  Tensor records;   ///< linear: how many
};

class Lattice {
 public:
  Lattice(const LatticeOptions& options, const FlowRule& rule, Tensor energies, int64_t layers,
          int64_t hidden_width)
      : options_(options),
        rule_(rule),
        energies_(energies),
        builder_(&energies.builder()),
        dtype_(energies.dtype()),
        samples_(energies.dim(0)),
        layers_(layers),
        hidden_width_(hidden_width) {
    require_lattice(options, samples_);
    if (energies.rank() != 2 || energies.dim(1) != options.surface())
      throw UsageError(fmt::format("energy flow: energies {}, [B, {}] was expected",
                                   energies.type().text(), options.surface()));
  }

  FlowRun run() {
    const std::vector<Tensor> start = pack(initial());
    const LoopResult result = loop(
        *builder_, start, {}, {.iterations = options_.most_steps(), .segments = options_.segments},
        [&](const LoopBody& body) {
          builder_ = &body.index.builder();
          Store store = unpack(body.carried);
          const Step step = make_step(store, body.index);
          IterationResults next;
          next.carried = pack(store);
          next.stacked = {step.counts};
          if (options_.tracks) {
            const FlowTracks& t = step.tracks;
            for (const Tensor& each : {t.alive, t.id, t.from, t.to, t.energy, t.fate})
              next.stacked.push_back(each);
          }
          next.stop = step.stop;
          return next;
        });
    builder_ = &energies_.builder();
    Store store = unpack(result.carried);
    FlowRun run;
    run.executed = result.executed;
    run.counts = result.stacked[0];
    if (options_.tracks) {
      const std::vector<Tensor>& t = result.stacked;
      run.tracks = {t[1], t[2], t[3], t[4], t[5], t[6]};
    }
    run.causes = causes_;
    run.created = store.created;
    run.dropped = store.dropped;
    run.injected = injected();
    run.not_injected = samples_ * options_.surface() - injected();
    const Tensor left = active(store);
    run.active = count_of(left);
    run.projected_on_stop = store.projected_on_stop;
    if (options_.project_on_stop) {
      run.projected_on_stop = run.projected_on_stop + run.active;
      record(store, store.flows, left);
    }
    run.surface = reshape(merged(store.merge), {samples_, options_.surface()});
    return run;
  }

 private:
  /// All that goes from step to step.
  struct Store {
    Flows flows;    ///< capacity rows; id too
    Tensor sample;  ///< i32 [C]
    Tensor count;   ///< i64 []: rows that hold a flow
    Merge merge;
    Tensor created, dropped, projected_on_stop;  ///< i64 []
    // Of the stop rule, by group: the whole batch or each sample. i64 [G], `stopped` bool [G].
    Tensor group_created, completed, best, stall, stopped;
  };
  struct Step {
    Tensor counts;
    Tensor stop;
    FlowTracks tracks = {};
  };

  int64_t capacity() const { return options_.capacity; }
  int64_t injected() const { return std::min(samples_ * options_.surface(), capacity()); }
  int64_t groups() const { return options_.stop.per_sample ? samples_ : 1; }
  Tensor number(double value) { return full(*builder_, {DType::i64, {}}, value); }
  Tensor rows() { return iota(*builder_, {DType::i32, {capacity()}}, 0); }
  Tensor zeros(DType dtype, const Shape& shape) { return full(*builder_, {dtype, shape}, 0); }

  std::vector<Tensor> pack(const Store& s) const {
    std::vector<Tensor> all = {
        s.flows.position, s.flows.energy, s.flows.age, s.flows.id,          s.sample,
        s.count,          s.created,      s.dropped,   s.projected_on_stop, s.group_created,
        s.completed,      s.best,         s.stall,     s.stopped,           s.merge.weighted,
        s.merge.weights};
    if (options_.readout == Readout::linear) {
      all.push_back(s.merge.energies);
      all.push_back(s.merge.records);
    }
    all.insert(all.end(), s.flows.hidden.begin(), s.flows.hidden.end());
    return all;
  }
  Store unpack(const std::vector<Tensor>& all) const {
    Store s;
    size_t next = 0;
    for (Tensor* each :
         {&s.flows.position, &s.flows.energy, &s.flows.age, &s.flows.id, &s.sample, &s.count,
          &s.created, &s.dropped, &s.projected_on_stop, &s.group_created, &s.completed, &s.best,
          &s.stall, &s.stopped, &s.merge.weighted, &s.merge.weights})
      *each = all[next++];
    if (options_.readout == Readout::linear) {
      s.merge.energies = all[next++];
      s.merge.records = all[next++];
    }
    s.flows.hidden.assign(all.begin() + static_cast<std::ptrdiff_t>(next), all.end());
    return s;
  }

  // A flow on each cell, in the order of samples and cells.
  Store initial() {
    const Fp32Scope island(*builder_);
    const int64_t all = samples_ * options_.surface(), surface = options_.surface();
    const Tensor flat = reshape(energies_, {all, 1});
    Store s;
    s.flows.energy =
        all >= capacity() ? slice(flat, 0, 0, capacity()) : pad(flat, 0, 0, capacity() - all);
    const Tensor row = rows();
    const Tensor holds = less(row, static_cast<double>(injected()));
    const Tensor cell = remainder(row, static_cast<double>(surface));
    s.sample = row / static_cast<double>(surface);
    const auto width = static_cast<double>(options_.width);
    const Tensor x = cast(remainder(cell, width), dtype_), y = cast(cell / width, dtype_);
    const auto coordinate = [&](Tensor index, int64_t extent) {
      return options_.mode == FlowMode::absolute
                 ? index
                 : 2.0 * index / static_cast<double>(extent - 1) - 1.0;
    };
    const int64_t half = options_.depth / 2;  // whole: the plane in the middle, or the one below it
    const double middle = 2 * static_cast<double>(half) / static_cast<double>(options_.depth) - 1;
    const Tensor parts[] = {expand_dims(coordinate(x, options_.width), 1),
                            expand_dims(coordinate(y, options_.height), 1),
                            full(*builder_, {dtype_, {capacity(), 1}},
                                 options_.mode == FlowMode::absolute ? 0 : middle)};
    s.flows.position = select(expand_dims(holds, 1), concat(parts, 1), 0.0);
    s.flows.age = zeros(DType::i32, {capacity()});
    s.flows.id = cast(row, DType::i64);
    s.count = s.created = number(static_cast<double>(injected()));
    const TensorType hidden{dtype_, {capacity(), hidden_width_}};
    s.flows.hidden.assign(static_cast<size_t>(layers_), options_.tile_rows > 0
                                                            ? zero_rows(*builder_, hidden, s.count)
                                                            : full(*builder_, hidden, 0));
    s.dropped = s.projected_on_stop = number(0);
    const Shape cells = {samples_ * surface};
    s.merge = {zeros(dtype_, cells), zeros(dtype_, cells), zeros(dtype_, cells),
               zeros(dtype_, cells)};
    s.group_created = by_group(holds, s.sample);
    s.completed = s.best = s.stall = zeros(DType::i64, {groups()});
    s.stopped = zeros(DType::boolean, {groups()});
    return s;
  }

  // Rows that hold a flow, of a sample that goes on where each is by itself: bool [C].
  Tensor active(const Store& store) {
    const Tensor holds = less(rows(), cast(store.count, DType::i32));
    if (!options_.stop.per_sample) return holds;
    return logical_and(holds, logical_not(gather(store.stopped, store.sample)));
  }
  Tensor group(Tensor sample) {
    return options_.stop.per_sample ? sample : zeros(DType::i32, {capacity()});
  }
  Tensor by_group(Tensor truths, Tensor sample) {
    return scatter_add(cast(truths, DType::i64), group(sample), groups());
  }

  // Adds the flows of these rows to the cells in which they end.
  void record(Store& store, const Flows& flows, Tensor which) {
    const FlowEnd end = rule_.end(flows);
    const Fp32Scope island(*builder_);
    const Tensor cell = store.sample * static_cast<double>(options_.surface()) + end.cell;
    const Tensor key = select(which, cell, -1.0);  // which writes nothing
    const Tensor energy = squeeze(flows.energy, 1);
    Tensor weight = abs(energy) * (1.0 + kAgeWeight * cast(flows.age, dtype_));
    const bool softmax = options_.readout == Readout::softmax;
    // No importance is above 1 + age / 10, so its exponential needs no largest one taken off.
    if (softmax) weight = exp(weight / (1.0 + end.distance));
    if (!options_.importance_gradient) weight = stop_gradient(weight);
    const auto add = [&](Tensor& sum, Tensor values) {
      sum = sum + scatter_add(values, key, sum.dim(0));
    };
    add(store.merge.weighted, weight * energy);
    add(store.merge.weights, weight);
    if (softmax) return;
    add(store.merge.energies, energy);
    add(store.merge.records, full(*builder_, energy.type(), 1));
  }

  // No division by zero is ever made, so that no gradient has one.
  Tensor merged(const Merge& merge) {
    const Fp32Scope island(*builder_);
    if (options_.readout == Readout::softmax) {
      const Tensor any = greater(merge.weights, 0.0);
      return select(any, merge.weighted / select(any, merge.weights, 1.0), 0.0);
    }
    const Tensor weighed = greater_equal(merge.weights, kLeastImportance);
    return select(weighed, merge.weighted / select(weighed, merge.weights, 1.0),
                  merge.energies / maximum(merge.records, 1.0));
  }

  Step make_step(Store& store, Tensor index) {
    Flows flows = store.flows;
    flows.step = index;
    FlowMove move = options_.tile_rows > 0 ? move_tiles(flows, store.count) : rule_.move(flows);
    move.next.id = flows.id;
    const Tensor alive = active(store);
    Tensor projects = move.projects.valid() ? move.projects : zeros(DType::boolean, {capacity()});
    const Tensor recorded = logical_and(alive, logical_or(move.exits, projects));
    Tensor ends = logical_or(move.exits, projects);
    for (const auto& [cause, dies] : move.deaths) ends = logical_or(ends, dies);
    const Tensor stays = logical_and(alive, logical_not(ends));

    FlowTracks tracks;
    if (options_.tracks)
      tracks = {alive,
                flows.id,
                flows.position,
                move.next.position,
                squeeze(move.next.energy, 1),
                fates(move, projects)};
    record(store, move.next, recorded);
    store.completed = store.completed + by_group(recorded, store.sample);
    const auto among = [&](Tensor truths) { return count_of(logical_and(alive, truths)); };
    const Tensor children = select(stays, move.children, 0.0);
    const Tensor wanted = reduce_sum(cast(children, DType::i64), {0});
    const Tensor made = settle(store, move, stays, children);
    store.dropped = store.dropped + (wanted - made);

    std::vector<Tensor> counts = {
        count_of(alive), among(move.exits),
        among(projects), move.reflected.valid() ? among(move.reflected) : number(0),
        wanted,          made,
        store.count};
    causes_.clear();
    for (const auto& [cause, dies] : move.deaths) {
      causes_.push_back(cause);
      counts.push_back(among(dies));
    }
    for (Tensor& count : counts) count = expand_dims(count, 0);
    const Tensor stop = decide(store, index);
    return {concat(counts, 0), stop, tracks};
  }
  static Tensor fates(const FlowMove& move, Tensor projects) {
    const auto number = [](FlowFate fate) { return static_cast<double>(fate); };
    Tensor fate = cast(projects, DType::i32) * number(FlowFate::projected);
    fate = select(move.exits, number(FlowFate::left), fate);
    for (size_t i = 0; i < move.deaths.size(); ++i)
      fate = select(move.deaths[i].second, number(FlowFate::died) + static_cast<double>(i), fate);
    return fate;
  }

  // What the rule makes of the first `count` rows, tile by tile; zeros of the others.
  FlowMove move_tiles(const Flows& flows, Tensor count) {
    std::vector<Tensor> rows = {flows.position, flows.energy, flows.age, flows.id};
    rows.insert(rows.end(), flows.hidden.begin(), flows.hidden.end());
    FlowMove move;
    std::vector<Tensor> distinct;  // what is one value in the rule stays one
    std::vector<std::pair<Tensor*, size_t>> places;
    const std::vector<Tensor> results =
        map_rows(count, options_.tile_rows, rows, [&](const std::vector<Tensor>& tile) {
          Flows some;
          some.position = tile[0];
          some.energy = tile[1];
          some.age = tile[2];
          some.id = tile[3];
          some.hidden.assign(tile.begin() + 4, tile.end());
          some.step = flows.step;
          move = rule_.move(some);
          for (Tensor* each : parts_of(move)) {
            if (!each->valid()) continue;
            const auto known = std::ranges::find_if(distinct, [&](Tensor other) {
              return other.value() == each->value() && &other.builder() == &each->builder();
            });
            places.emplace_back(each, static_cast<size_t>(known - distinct.begin()));
            if (known == distinct.end()) distinct.push_back(*each);
          }
          return distinct;
        });
    for (const auto& [part, place] : places) *part = results[place];
    return move;
  }
  // All that a rule answers by rows.
  static std::vector<Tensor*> parts_of(FlowMove& move) {
    std::vector<Tensor*> parts = {&move.exits, &move.projects, &move.children, &move.reflected,
                                  &move.next.age};
    for (auto& [cause, dies] : move.deaths) parts.push_back(&dies);
    for (Flows* flows : {&move.next, &move.child}) {
      parts.push_back(&flows->position);
      parts.push_back(&flows->energy);
      for (Tensor& layer : flows->hidden) parts.push_back(&layer);
    }
    return parts;
  }

  // Packs the flows that stay and their children into the store: [C] rows from these. How many children found room.
  Tensor settle(Store& store, const FlowMove& move, Tensor stays, Tensor children) {
    const Tensor stay = cast(stays, DType::i32);
    const Tensor staying = reduce_sum(stay, {0});
    const Tensor born = reduce_sum(children, {0});
    const Tensor first_child = cumsum(children, 0, /*exclusive=*/true) + staying;
    const Tensor row = rows();
    const auto target = [&](Tensor truths, Tensor place) { return select(truths, place, -1.0); };
    // The places that each row goes to: the survivor's own, then its children's, -1 for none.
    std::vector<Tensor> places = {target(stays, cumsum(stay, 0, true))};
    for (int64_t k = 0; k < options_.most_spawned; ++k) {
      const auto number_k = static_cast<double>(k);
      places.push_back(target(greater(children, number_k), first_child + number_k));
    }
    // Each row is the source of one place at most in every part, and no place has two: their sum is what was scattered.
    Tensor source = scatter_add(row, places[0], capacity());
    for (size_t k = 1; k < places.size(); ++k)
      source = source + scatter_add(row, places[k], capacity());
    const Tensor count = minimum(staying + born, static_cast<double>(capacity()));
    const Tensor held = cast(count, DType::i64);
    const Tensor holds = less(row, count);
    const Tensor is_child = greater_equal(row, staying);
    for (Tensor& place : places) place = expand_dims(place, 1);
    const auto moved = [&](Tensor from, Tensor which, std::span<const Tensor> to) {
      const Tensor indices = expand_dims(select(which, source, -1.0), 1);  // -1 reads zero
      // Tiles look at no row beyond those that hold a flow, so that none needs to be made.
      const bool wide = from.rank() > 1 && from.dim(1) > kFewColumns && options_.tile_rows > 0;
      return gather_sum(from, indices, concat(to, 1),
                        wide ? GatherSumCounts{held, store.count} : GatherSumCounts{});
    };
    const auto all = [&](Tensor from) { return moved(from, holds, places); };
    const auto survivors = [&](Tensor from) {
      return moved(from, logical_not(is_child), std::span(places).first(1));
    };
    const auto pick = [&](Tensor stayed, Tensor child) {
      if (stayed.value() == child.value()) return all(stayed);
      if (places.size() == 1) return survivors(stayed);
      const Tensor second =
          moved(child, logical_and(holds, is_child), std::span(places).subspan(1));
      Tensor condition = is_child;
      while (condition.rank() < second.rank()) condition = expand_dims(condition, condition.rank());
      return select(condition, second, survivors(stayed));
    };
    Flows& flows = store.flows;
    flows.position = pick(move.next.position, move.child.position);
    flows.energy = pick(move.next.energy, move.child.energy);
    for (size_t layer = 0; layer < flows.hidden.size(); ++layer)
      flows.hidden[layer] = pick(move.next.hidden[layer], move.child.hidden[layer]);
    flows.age = survivors(move.next.age);
    const Tensor made = cast(count - staying, DType::i64);
    const Tensor fresh = store.created + cast(row - staying, DType::i64);
    flows.id = select(is_child, fresh, survivors(move.next.id));
    store.sample = all(store.sample);
    store.group_created =
        store.group_created + by_group(logical_and(is_child, holds), store.sample);
    store.created = store.created + made;
    store.count = held;
    return made;
  }

  // Whether the loop ends here: what the rule would say at the top of the next step, when no flow is left included.
  Tensor decide(Store& store, Tensor index) {
    const StopOptions& rule = options_.stop;
    const Tensor empty = less_equal(store.count, 0.0);
    if (!rule.on) return empty;
    const Tensor of = rule.of_initial ? initial_of_groups() : store.group_created;
    const Tensor due = greater_equal(index + 1.0, static_cast<double>(rule.min_steps));
    const Tensor going = logical_and(logical_not(store.stopped), due);
    // Doubles: a share of large counts is compared as it is meant.
    const Tensor share = cast(store.completed, DType::f64) / maximum(cast(of, DType::f64), 1.0);
    const Tensor enough = greater_equal(share, rule.threshold);
    const Tensor checks = logical_and(going, logical_not(enough));
    const Tensor better = greater(store.completed, store.best);
    store.best = select(logical_and(checks, better), store.completed, store.best);
    store.stall = select(checks, select(better, 0.0, store.stall + 1.0), store.stall);
    const Tensor patience = greater_equal(store.stall, static_cast<double>(rule.patience));
    const Tensor now = logical_and(going, logical_or(enough, logical_and(checks, patience)));
    if (rule.per_sample) end_samples(store, now);
    store.stopped = logical_or(store.stopped, now);
    return logical_or(empty, reduce_min_truth(store.stopped));
  }
  Tensor initial_of_groups() {
    const Tensor row = rows();
    return by_group(less(row, static_cast<double>(injected())),
                    row / static_cast<double>(options_.surface()));
  }
  static Tensor reduce_min_truth(Tensor truths) {
    return equal(reduce_min(cast(truths, DType::i32), {0}), 1.0);
  }

  // Flows of samples that end now count where they are. Their rows are given up by the next step.
  void end_samples(Store& store, Tensor now) {
    if (!options_.project_on_stop) return;
    const Tensor which = logical_and(active(store), gather(now, store.sample));
    record(store, store.flows, which);
    store.projected_on_stop = store.projected_on_stop + count_of(which);
  }

  const LatticeOptions& options_;
  const FlowRule& rule_;
  Tensor energies_;
  GraphBuilder* builder_;  ///< of what is being written: the step's, or the loop's body
  DType dtype_;
  int64_t samples_;
  int64_t layers_;
  int64_t hidden_width_;
  std::vector<std::string> causes_;
};

}  // namespace

FlowRun run_flows(const LatticeOptions& options, const FlowRule& rule, Tensor energies,
                  int64_t layers, int64_t hidden_width) {
  return Lattice(options, rule, energies, layers, hidden_width).run();
}

}  // namespace fullbore::energy_flow

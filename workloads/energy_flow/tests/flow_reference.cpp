#include "workloads/energy_flow/tests/flow_reference.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fullbore::energy_flow::reference {
namespace {

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<double> product(const Matrix& weight, const Matrix& bias,
                            const std::vector<double>& x) {
  std::vector<double> y(static_cast<size_t>(weight.rows));
  for (int64_t i = 0; i < weight.rows; ++i) {
    double sum = bias.at(i);
    for (int64_t k = 0; k < weight.columns; ++k) sum += weight.at(i, k) * x[static_cast<size_t>(k)];
    y[static_cast<size_t>(i)] = sum;
  }
  return y;
}
std::vector<double> affine(const Linear& linear, const std::vector<double>& x) {
  return product(linear.weight, linear.bias, x);
}

std::vector<double> normalized_gelu(std::vector<double> x) {
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x)
    variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  for (double& value : x) value = gelu((value - mean) / std::sqrt(variance + 1e-5));
  return x;
}

std::vector<double> with_gelu(std::vector<double> x) {
  for (double& value : x) value = gelu(value);
  return x;
}

std::vector<double> gru(const GruLayer& layer, const std::vector<double>& x,
                        const std::vector<double>& h) {
  const std::vector<double> a = product(layer.weight_ih, layer.bias_ih, x);
  const std::vector<double> b = product(layer.weight_hh, layer.bias_hh, h);
  const size_t width = h.size();
  std::vector<double> next(width);
  for (size_t i = 0; i < width; ++i) {
    const double r = sigmoid(a[i] + b[i]);
    const double z = sigmoid(a[width + i] + b[width + i]);
    const double n = std::tanh(a[2 * width + i] + r * b[2 * width + i]);
    next[i] = (1 - z) * n + z * h[i];
  }
  return next;
}

double clamp(double x, double low, double high) { return std::min(std::max(x, low), high); }

class Run {
 public:
  Run(const Lattice& lattice, const Networks& networks,
      const std::function<void(int64_t, const Flow&)>& watch)
      : lattice_(lattice), networks_(networks), watch_(watch) {}

  Trajectory trajectory(const std::vector<double>& energies) {
    inject(energies);
    StopDecision decision(lattice_.stop);
    for (int64_t step = 0; step < lattice_.most_steps; ++step) {
      result_.stop_reason = decision.before(
          static_cast<int>(step), std::ssize(flows_), result_.exits + result_.projected,
          lattice_.stop.of_initial ? result_.injected : result_.created);
      if (!result_.stop_reason.empty()) break;
      make_step(step);
    }
    if (lattice_.project_on_stop)
      for (const Flow& flow : flows_) {
        project(flow);
        ++result_.projected_on_stop;
      }
    std::map<std::pair<int64_t, int64_t>, std::vector<ExitRecord>> cells;
    for (const ExitRecord& record : result_.records)
      cells[{record.sample, record.cell}].push_back(record);
    result_.surface.assign(energies.size(), 0);
    for (const auto& [place, records] : cells)
      result_.surface[static_cast<size_t>(place.first * cell_count() + place.second)] =
          merged(records, lattice_.readout);
    return result_;
  }

 private:
  int64_t cell_count() const { return lattice_.width * lattice_.height; }
  bool relative() const { return lattice_.mode == Mode::relative; }
  void margin(double value, double threshold) {
    result_.least_margin = std::min(result_.least_margin, std::abs(value - threshold));
  }

  void inject(const std::vector<double>& energies) {
    for (size_t i = 0; i < energies.size(); ++i) {
      if (std::ssize(flows_) == lattice_.capacity) {
        ++result_.not_injected;
        continue;
      }
      Flow flow;
      flow.sample = static_cast<int64_t>(i) / cell_count();
      const int64_t cell = static_cast<int64_t>(i) % cell_count();
      const auto x = static_cast<double>(cell % lattice_.width);
      const int64_t row = cell / lattice_.width;
      const auto y = static_cast<double>(row);
      if (relative()) {
        flow.p[0] = 2 * x / static_cast<double>(lattice_.width - 1) - 1;
        flow.p[1] = 2 * y / static_cast<double>(lattice_.height - 1) - 1;
        const int64_t half = lattice_.depth / 2;
        flow.p[2] = 2 * static_cast<double>(half) / static_cast<double>(lattice_.depth) - 1;
      } else {
        flow.p[0] = x;
        flow.p[1] = y;
      }
      flow.energy = energies[i];
      flow.hidden.assign(networks_.gru.size(),
                         std::vector<double>(static_cast<size_t>(networks_.hidden())));
      flow.id = result_.created++;
      flows_.push_back(flow);
    }
    result_.injected = result_.created;
  }

  void make_step(int64_t step) {
    counts_ = {.in = std::ssize(flows_)};
    std::vector<Flow> stay, children;
    for (const Flow& flow : flows_)
      if (relative())
        move(flow, stay, children);
      else
        jump(flow, stay, children);
    flows_ = std::move(stay);
    counts_.wanted = std::ssize(children);
    for (Flow& child : children) {
      if (std::ssize(flows_) == lattice_.capacity) break;
      child.id = result_.created++;
      ++counts_.made;
      flows_.push_back(std::move(child));
    }
    result_.dropped += counts_.wanted - counts_.made;
    counts_.out = std::ssize(flows_);
    result_.exits += counts_.exits;
    result_.projected += counts_.projected;
    result_.dead += counts_.dead_energy + counts_.dead_backward + counts_.dead_bounds;
    result_.steps.push_back(counts_);
    if (watch_)
      for (const Flow& flow : flows_) watch_(step, flow);
  }

  int64_t relative_cell(const double p[3]) {
    const auto nearest = [&](double coordinate, int64_t cells) {
      const double place = (coordinate + 1) / 2 * static_cast<double>(cells - 1);
      margin(place - std::floor(place), 0.5);
      return std::clamp<int64_t>(static_cast<int64_t>(std::nearbyint(place)), 0, cells - 1);
    };
    return nearest(p[1], lattice_.height) * lattice_.width + nearest(p[0], lattice_.width);
  }

  void record(const Flow& flow, int plane, double distance) {
    result_.records.push_back({flow.sample, relative_cell(flow.p), flow.energy,
                               static_cast<double>(flow.age), distance, plane});
  }
  void project(const Flow& flow) {
    const double to_z0 = std::abs(flow.p[2] + 1), to_zd = std::abs(1 - flow.p[2]);
    record(flow, to_z0 <= to_zd ? 0 : 1, std::min(to_z0, to_zd));
  }

  void move(const Flow& flow, std::vector<Flow>& stay, std::vector<Flow>& children) {
    Answer answer = ask(networks_, Mode::relative, flow.p, flow.energy, flow.hidden);
    Flow next = flow;
    double squares = 0, c[3];
    bool reflected = false;
    for (int i = 0; i < 3; ++i) {
      const double r = flow.p[i] + clamp(answer.displacement[i], -0.5, 0.5);
      c[i] = clamp(r, -1, 1);
      squares += (c[i] - flow.p[i]) * (c[i] - flow.p[i]);
      const double folded = r < -1 ? -2 - r : r > 1 ? 2 - r : r;
      next.p[i] = i < 2 ? clamp(folded, -1, 1) : c[i];
      if (i < 2) reflected |= r < -1 || r > 1;
    }
    const double length = std::sqrt(squares);
    counts_.reflected += reflected ? 1 : 0;
    next.energy = answer.energy;
    next.hidden = std::move(answer.hidden);
    ++next.age;
    margin(std::abs(flow.p[2] + clamp(answer.displacement[2], -0.5, 0.5)), 1);
    if (c[2] <= -1 || c[2] >= 1) {
      record(next, c[2] <= -1 ? 0 : 1, 0);
      ++counts_.exits;
      return;
    }
    if (next.age >= lattice_.depth / 2) {
      project(next);
      ++counts_.projected;
      return;
    }
    const double ratio = length / lattice_.spawn_threshold;
    margin(ratio, std::nearbyint(ratio));
    const int64_t count =
        children_of_length(length, lattice_.spawn_threshold, lattice_.most_spawned);
    for (int64_t k = 0; k < count; ++k) {
      Flow child = next;
      std::copy(flow.p, flow.p + 3, child.p);
      child.age = 0;
      children.push_back(child);
    }
    stay.push_back(std::move(next));
  }

  void jump(const Flow& flow, std::vector<Flow>& stay, std::vector<Flow>& children) {
    const double extents[3] = {static_cast<double>(lattice_.width - 1),
                               static_cast<double>(lattice_.height - 1),
                               static_cast<double>(lattice_.depth - 1)};
    double normalized[3];
    for (int i = 0; i < 3; ++i) normalized[i] = 2 * flow.p[i] / extents[i] - 1;
    Answer answer = ask(networks_, Mode::absolute, normalized, flow.energy, flow.hidden);
    const auto depth = static_cast<double>(lattice_.depth);
    const double raw[3] = {(answer.position[0] + 1) / 2 * extents[0],
                           (answer.position[1] + 1) / 2 * extents[1],
                           (answer.position[2] + 1) / 2 * (2 * depth - 1)};
    Flow next = flow;
    for (int i = 0; i < 3; ++i) {
      margin(raw[i] - std::floor(raw[i]), 0.5);
      next.p[i] = std::nearbyint(raw[i]);
    }
    if (raw[2] >= depth) next.p[2] = depth;
    next.energy = answer.energy;
    next.hidden = std::move(answer.hidden);
    ++next.age;
    margin(std::abs((next.energy + 1) / 2), lattice_.energy_threshold);
    if (std::abs((next.energy + 1) / 2) <= lattice_.energy_threshold) {
      ++counts_.dead_energy;
      return;
    }
    if (next.p[2] <= flow.p[2]) {
      ++counts_.dead_backward;
      return;
    }
    if (next.p[0] < 0 || next.p[0] >= static_cast<double>(lattice_.width) || next.p[1] < 0 ||
        next.p[1] >= static_cast<double>(lattice_.height)) {
      ++counts_.dead_bounds;
      return;
    }
    if (next.p[2] >= depth - 1) {
      const auto cell =
          static_cast<int64_t>(next.p[1]) * lattice_.width + static_cast<int64_t>(next.p[0]);
      result_.records.push_back(
          {next.sample, cell, next.energy, static_cast<double>(next.age), 0, 1});
      ++counts_.exits;
      return;
    }
    const double ratio = (answer.gate - lattice_.spawn_threshold) / (1 - lattice_.spawn_threshold) *
                         static_cast<double>(lattice_.most_spawned);
    margin(ratio, std::nearbyint(ratio));
    const int64_t count =
        children_of_gate(answer.gate, lattice_.spawn_threshold, lattice_.most_spawned);
    for (int64_t k = 0; k < count; ++k) {
      Flow child = next;
      child.energy = answer.spawn_energy / static_cast<double>(count + 1);
      child.age = 0;
      children.push_back(child);
    }
    stay.push_back(std::move(next));
  }

  const Lattice& lattice_;
  const Networks& networks_;
  const std::function<void(int64_t, const Flow&)>& watch_;
  std::vector<Flow> flows_;
  StepCounts counts_;
  Trajectory result_;
};

}  // namespace

std::vector<Matrix*> Networks::matrices() {
  std::vector<Matrix*> all;
  for (Linear* linear :
       {&coordinates, &neuron1, &neuron2, &neuron3, &energy1, &energy2, &displacement1,
        &displacement2, &position1, &position2, &gate1, &gate2, &spawn_energy})
    all.insert(all.end(), {&linear->weight, &linear->bias});
  for (GruLayer& layer : gru)
    all.insert(all.end(), {&layer.weight_ih, &layer.weight_hh, &layer.bias_ih, &layer.bias_hh});
  return all;
}

std::string StopDecision::before(int step, int64_t active, int64_t completed, int64_t of) {
  if (active == 0) return "empty";
  if (!rule_.on || step < rule_.min_steps) return "";
  if (static_cast<double>(completed) / static_cast<double>(of) >= rule_.threshold)
    return "threshold";
  if (completed > best_) {
    best_ = completed;
    stall_ = 0;
  } else {
    ++stall_;
  }
  return stall_ >= rule_.patience ? "patience" : "";
}

int64_t children_of_length(double length, double threshold, int64_t most) {
  if (length <= threshold) return 0;
  const auto count = static_cast<int64_t>(std::floor(length / threshold)) - 1;
  return std::clamp<int64_t>(count, 0, most);
}

int64_t children_of_gate(double gate, double threshold, int64_t most) {
  if (gate <= threshold) return 0;
  const double share = (gate - threshold) / (1 - threshold) * static_cast<double>(most);
  return std::min(static_cast<int64_t>(std::floor(share)) + 1, most);
}

Answer ask(const Networks& networks, Mode mode, const double normalized[3], double energy,
           const std::vector<std::vector<double>>& hidden) {
  Answer answer;
  std::vector<double> input =
      affine(networks.coordinates, {normalized[0], normalized[1], normalized[2]});
  input.push_back(energy);
  answer.features = affine(
      networks.neuron3,
      normalized_gelu(affine(networks.neuron2, normalized_gelu(affine(networks.neuron1, input)))));
  std::vector<double> x = answer.features;
  x.push_back(energy);
  for (size_t layer = 0; layer < networks.gru.size(); ++layer) {
    answer.hidden.push_back(gru(networks.gru[layer], x, hidden[layer]));
    x = answer.hidden.back();
  }
  const auto head = [&](const Linear& first, const Linear& second) {
    return affine(second, with_gelu(affine(first, x)));
  };
  answer.energy = std::tanh(head(networks.energy1, networks.energy2)[0]);
  if (mode == Mode::relative) {
    const std::vector<double> d = head(networks.displacement1, networks.displacement2);
    std::copy(d.begin(), d.end(), answer.displacement);
    return answer;
  }
  const std::vector<double> p = head(networks.position1, networks.position2);
  for (size_t i = 0; i < 3; ++i) answer.position[i] = std::tanh(p[i]);
  answer.gate = sigmoid(head(networks.gate1, networks.gate2)[0]);
  answer.spawn_energy = std::tanh(affine(networks.spawn_energy, x)[0]);
  return answer;
}

Trajectory run(const Lattice& lattice, const Networks& networks,
               const std::vector<double>& energies,
               const std::function<void(int64_t step, const Flow&)>& watch) {
  return Run(lattice, networks, watch).trajectory(energies);
}

double merged(const std::vector<ExitRecord>& records, Readout readout) {
  if (records.empty()) return 0;
  std::vector<double> weights;
  double sum = 0, most = -1e300;
  for (const ExitRecord& record : records) {
    double importance = std::abs(record.energy) * (1 + 0.1 * record.age);
    if (readout == Readout::softmax) importance /= 1 + record.distance;
    weights.push_back(importance);
    sum += importance;
    most = std::max(most, importance);
  }
  if (readout == Readout::softmax) {
    sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - most);
  } else if (sum < 1e-12) {
    std::ranges::fill(weights, 1);
    sum = static_cast<double>(weights.size());
  }
  double value = 0;
  for (size_t i = 0; i < records.size(); ++i) value += weights[i] / sum * records[i].energy;
  return value;
}

}  // namespace fullbore::energy_flow::reference

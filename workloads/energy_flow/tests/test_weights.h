#pragma once
#include <cmath>
#include <vector>

#include "workloads/energy_flow/tests/flow_reference.h"

/// The weights and lattices of the workload's specification, section 11.
namespace fullbore::energy_flow::reference {

inline Matrix tagged(int tag, int64_t rows, int64_t columns, double amplitude) {
  Matrix matrix{rows, columns, {}};
  for (int64_t i = 0; i < rows * columns; ++i)
    matrix.elements.push_back(amplitude * std::sin(1.7 * tag + 0.9 * static_cast<double>(i) + 0.3));
  return matrix;
}

struct Amplitudes {
  double matrix = 2.4, vector = 0.3;
  double first = 3;  ///< of the coordinates and the neuron's first layer
};

inline Networks test_networks(const Amplitudes& a) {
  constexpr int64_t kHidden = 4, kWide = 4, kOut = 3;
  const auto linear = [&](int tag, int64_t rows, int64_t columns, double amplitude) {
    return Linear{tagged(tag, rows, columns, amplitude), tagged(tag + 1, rows, 1, a.vector)};
  };
  Networks n;
  n.coordinates = linear(0, 3, 3, a.first);
  n.neuron1 = linear(2, kWide, 4, a.first);
  n.neuron2 = linear(5, kWide, kWide, a.matrix);
  n.neuron3 = linear(7, kOut, kWide, a.matrix);
  n.neuron1.bias = tagged(3, kWide, 1, a.vector);
  for (int layer = 0; layer < 2; ++layer)
    n.gru.push_back({tagged(10 + 4 * layer, 3 * kHidden, layer == 0 ? kOut + 1 : kHidden, a.matrix),
                     tagged(11 + 4 * layer, 3 * kHidden, kHidden, a.matrix),
                     tagged(12 + 4 * layer, 3 * kHidden, 1, a.vector),
                     tagged(13 + 4 * layer, 3 * kHidden, 1, a.vector)});
  n.energy1 = linear(30, kHidden / 2, kHidden, a.matrix);
  n.energy2 = linear(32, 1, kHidden / 2, a.matrix);
  n.displacement1 = linear(40, kWide, kHidden, a.matrix);
  n.displacement2 = linear(42, 3, kWide, 0.45);
  n.displacement2.bias.elements = {0, 0, 0.4};
  n.position1 = linear(50, kWide, kHidden, a.matrix);
  n.position2 = linear(52, 3, kWide, 1.4);
  n.position2.bias.elements = {0, 0, -0.3};
  n.gate1 = linear(60, kWide, kHidden, a.matrix);
  n.gate2 = linear(62, 1, kWide, a.matrix);
  n.gate2.bias.elements = {0};
  n.spawn_energy = linear(70, 1, kHidden, a.matrix);
  return n;
}

inline std::vector<double> test_energies(int64_t count) {
  std::vector<double> energies;
  for (int64_t i = 0; i < count; ++i)
    energies.push_back(0.9 * std::sin(0.31 + 0.77 * static_cast<double>(i)));
  return energies;
}

inline Lattice m1() {
  return {.width = 9,
          .height = 5,
          .depth = 8,
          .most_steps = 4,
          .spawn_threshold = 0.28,
          .most_spawned = 2};
}
inline Lattice mode_a() {
  return {.mode = Mode::absolute,
          .width = 6,
          .height = 5,
          .depth = 7,
          .most_steps = 7,
          .spawn_threshold = 0.6,
          .most_spawned = 3,
          .energy_threshold = 0.05,
          .project_on_stop = false,
          .readout = Readout::linear};
}
}  // namespace fullbore::energy_flow::reference

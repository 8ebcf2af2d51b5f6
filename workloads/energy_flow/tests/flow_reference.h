#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fullbore::energy_flow::reference {

// The lattice of flows as a loop over flows, one at a time in double precision: what the compiled model is held to.
// Nothing here is fast, and nothing is shared with the model.

/// A matrix [rows, columns], row-major; columns = 1 of a vector.
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 1;
  std::vector<double> elements;
  double at(int64_t row, int64_t column = 0) const {
    return elements[static_cast<size_t>(row * columns + column)];
  }
};

struct Linear {
  Matrix weight;  ///< [out, in]
  Matrix bias;    ///< [out]
};

struct GruLayer {
  Matrix weight_ih;  ///< [3 Hd, in], gates r, z, n
  Matrix weight_hh;  ///< [3 Hd, Hd]
  Matrix bias_ih;    ///< [3 Hd]
  Matrix bias_hh;
};

/// Neuron, carrier and heads. Layer norms have scale 1 and shift 0.
struct Networks {
  Linear coordinates;                ///< [3, 3]
  Linear neuron1, neuron2, neuron3;  ///< [nh, 4], [nh, nh], [no, nh]
  std::vector<GruLayer> gru;
  Linear energy1, energy2;              ///< [Hd/2, Hd], [1, Hd/2]
  Linear displacement1, displacement2;  ///< [hd, Hd], [3, hd]: mode R
  Linear position1, position2;          ///< mode A
  Linear gate1, gate2;                  ///< [hd, Hd], [1, hd]
  Linear spawn_energy;                  ///< [1, Hd]

  /// All of them in a fixed order: weight and bias of each Linear, then the GRU's.
  std::vector<Matrix*> matrices();
  int64_t hidden() const { return gru.front().weight_hh.columns; }
};

enum class Mode { relative, absolute };
enum class Readout { softmax, linear };

struct StopRule {
  bool on = false;
  double threshold = 0.95;
  int patience = 3;
  int min_steps = 5;
  bool of_initial = false;  ///< completed of the injected flows, not of those created
};

/// Decides about a batch from how many flows have completed.
class StopDecision {
 public:
  explicit StopDecision(const StopRule& rule) : rule_(rule) {}
  /// At the top of step `step`: "", "empty", "threshold" or "patience".
  std::string before(int step, int64_t active, int64_t completed, int64_t of);

 private:
  StopRule rule_;
  int64_t best_ = 0;
  int stall_ = 0;
};

struct Lattice {
  Mode mode = Mode::relative;
  int64_t width = 0, height = 0, depth = 0;
  int64_t capacity = 1 << 30;
  int64_t most_steps = 0;
  double spawn_threshold = 0.5;  ///< theta of mode R, tau_s of mode A
  int64_t most_spawned = 1;      ///< a flow and step
  double energy_threshold = 0;   ///< tau_e
  bool project_on_stop = true;
  Readout readout = Readout::softmax;
  StopRule stop = {};
};

/// Children that mode R makes of a displacement of this length, and mode A of this gate.
int64_t children_of_length(double length, double threshold, int64_t most);
int64_t children_of_gate(double gate, double threshold, int64_t most);

struct Flow {
  double p[3] = {};
  double energy = 0;
  std::vector<std::vector<double>> hidden;  ///< a layer each
  int64_t sample = 0;
  int64_t age = 0;
  int64_t id = 0;
};

struct ExitRecord {
  int64_t sample = 0;
  int64_t cell = 0;
  double energy = 0;
  double age = 0;
  double distance = 0;
  int plane = 0;  ///< 0: z0; 1: zD
};

struct StepCounts {
  int64_t in = 0, exits = 0, projected = 0, reflected = 0, wanted = 0, made = 0, out = 0;
  int64_t dead_energy = 0, dead_backward = 0, dead_bounds = 0;
};

struct Trajectory {
  std::vector<StepCounts> steps;
  std::string stop_reason;
  int64_t injected = 0, not_injected = 0, created = 0, dropped = 0;
  int64_t exits = 0, projected = 0, projected_on_stop = 0, dead = 0;
  std::vector<ExitRecord> records;
  std::vector<double> surface;  ///< [samples, height, width]
  /// Of the smallest distance between a value that decides and its threshold: a run whose margin is tiny may turn out
  /// otherwise in another order of additions.
  double least_margin = 1e300;
};

/// What the networks say of a flow at p with energy e.
struct Answer {
  std::vector<double> features;  ///< u
  std::vector<std::vector<double>> hidden;
  double energy = 0;
  double displacement[3] = {};
  double position[3] = {};
  double gate = 0;
  double spawn_energy = 0;
};
/// `normalized`: the position as the neuron takes it.
Answer ask(const Networks& networks, Mode mode, const double normalized[3], double energy,
           const std::vector<std::vector<double>>& hidden);

/// energies: [samples, height, width]. `watch`, if set, sees every flow that stays after each step.
Trajectory run(const Lattice& lattice, const Networks& networks,
               const std::vector<double>& energies,
               const std::function<void(int64_t step, const Flow&)>& watch = {});

/// The value of a cell from its records, in their order; 0 of none.
double merged(const std::vector<ExitRecord>& records, Readout readout);

}  // namespace fullbore::energy_flow::reference

// A workload of one's own, outside Fullbore's tree: a network learns where a damped spring is at a time. Registered
// with fullbore::app, it has every command: configurations, runs, checkpoints, --resume, plan, bench, profile.
//
//   spring config spring.damping
//   spring train spring.yaml train.steps=500      (spring.yaml: model: {name: spring})
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/app/app.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/batch_source.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

namespace {

// [keys]
struct SpringKeys {
  double damping = 0.3;
  int64_t channels = 32;
  bool operator==(const SpringKeys&) const = default;
};

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = {
      {"spring.damping",
       [](Config& config) -> ConfigPlace { return &config.get<SpringKeys>().damping; },
       {0, 10},
       {},
       "how fast the spring comes to rest, per second"},
      {"model.channels",
       [](Config& config) -> ConfigPlace { return &config.get<SpringKeys>().channels; },
       {1, 4096},
       {},
       "channels of the network"}};
  for (ConfigField& field : fields) field.models = {"spring"};
  return fields;
}
// [end]

// [data]
/// Times and stiffnesses, and where the spring is then: batch `position` follows from the seed alone.
class SpringBatches : public BatchSource {
 public:
  SpringBatches(int64_t rows, double damping, uint64_t seed)
      : rows_(rows), damping_(damping), seed_(seed) {
    fields_ = {{"inputs", {DType::f32, {rows, 2}}}, {"places", {DType::f32, {rows, 1}}}};
  }
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* const inputs = static_cast<float*>(buffers[0]);
    auto* const places = static_cast<float*>(buffers[1]);
    PhiloxStream draws(seed_, position);
    for (int64_t row = 0; row < rows_; ++row) {
      const double time = draws.uniform(0, 3), stiffness = draws.uniform(1, 4);
      inputs[2 * row] = static_cast<float>(time);
      inputs[2 * row + 1] = static_cast<float>(stiffness);
      places[row] =
          static_cast<float>(std::exp(-damping_ * time) * std::cos(std::sqrt(stiffness) * time));
    }
  }

 private:
  int64_t rows_;
  double damping_;
  uint64_t seed_;
  std::vector<BatchField> fields_;
};

std::shared_ptr<const SpringBatches> batches(const Config& config, uint64_t stream) {
  return std::make_shared<const SpringBatches>(config.train.batch_size,
                                               config.get<SpringKeys>().damping,
                                               static_cast<uint64_t>(config.run.seed) + stream);
}
// [end]

// [model]
// inputs f32 [B,2], places f32 [B,1] -> mean squared error
LossFunction loss(const Config& config) {
  return [width = config.get<SpringKeys>().channels](Trace& trace, std::span<const Tensor> batch) {
    Tensor x = tanh(nn::linear(trace, "first", batch[0], width));
    x = tanh(nn::linear(trace, "second", x, width));
    const Tensor error = nn::linear(trace, "last", x, 1) - batch[1];
    return reduce_mean(error * error, {0, 1});
  };
}
// [end]

// [workload]
TrainingJob job(const Config& config) {
  TrainingJob job;
  job.loss = loss(config);
  job.training = batches(config, 0);
  job.validation = ValidationSet{batches(config, 1), 4};
  job.tokens_per_step = config.train.batch_size;
  job.sample_unit = "times";
  job.options = training_options(config);
  job.identity = {{"data", "damped springs"}, {"model", "spring"}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

OpenedWorkload open(const Config&, Console&, const StandIn&) {
  OpenedWorkload opened;
  opened.loss = loss;
  opened.shapes = [](const Config& config) { return batches(config, 0)->shapes(); };
  opened.validates = [](const Config&) { return true; };
  opened.job = job;
  opened.sample = "times";
  opened.unit = "numbers";
  opened.batches = "damped springs";
  opened.about = [](const Config& config) {
    return "springs  damped by " + std::to_string(config.get<SpringKeys>().damping);
  };
  return opened;
}
// [end]

}  // namespace

int main(int argc, char** argv) {
  const Workload spring{
      .name = "spring", .keys = {.models = {"spring"}, .fields = fields}, .open = open};
  return app(argc, argv, {&spring, 1});
}

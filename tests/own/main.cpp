// bin/fullbore_own: a program of one model, by the short form of fullbore/app/own_model.h.
#include <cmath>

#include "fullbore/app/own_model.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

namespace {

struct Sizes {
  int64_t channels = 8;
  bool operator==(const Sizes&) const = default;
};

Loss loss(Trace& trace, const BatchTensors& batch) {
  const Tensor x = tanh(nn::linear(trace, "first", batch["inputs"], batch.keys<Sizes>().channels,
                                   {.weight_initializer = Initializer::normal(0.5)}));
  const Tensor error = nn::linear(trace, "last", x, 1) - batch["places"];
  Loss made = reduce_mean(error * error, {0, 1});
  made.metrics = {{"close", reduce_mean(cast(less(abs(error), 0.5), DType::f32), {0, 1})}};
  return made;
}

void fill(uint64_t, BatchView batch) {
  PhiloxStream draws = batch.random();
  const std::span<float> inputs = batch.f32("inputs"), places = batch.f32("places");
  for (size_t row = 0; row < places.size(); ++row) {
    const double time = draws.uniform(0, 3), stiffness = draws.uniform(1, 4);
    inputs[2 * row] = static_cast<float>(time);
    inputs[2 * row + 1] = static_cast<float>(stiffness);
    places[row] = static_cast<float>(std::cos(std::sqrt(stiffness) * time));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const OwnBatches data = batches({{"inputs", f32, {16, 2}}, {"places", f32, {16, 1}}}, fill);
  return app(argc, argv,
             {.loss = loss,
              .data = data,
              .unit = "springs",
              .evaluation = data,
              .metrics = {{"close", "close"}},
              .keys = {key<&Sizes::channels>("model.channels", {1, 4096}, "channels")},
              .settings = {"train.steps=30", "train.eval_interval=15", "optim.learning_rate=0.02",
                           "optim.warmup_steps=0"},
              .name = "springs"});
}

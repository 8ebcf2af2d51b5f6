// Images: a small convolutional network with batch normalisation and pooling tells in which of four directions noisy
// stripes run.
//
// usage: cnn train [key=value ...], cnn eval RUN, cnn --help
#include <cmath>
#include <numbers>
#include <string>

#include "fullbore/app/own_model.h"
#include "fullbore/nn/image_layers.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

namespace {

constexpr int64_t kSide = 16;
constexpr int64_t kDirections = 4;

// images f32 [B,1,16,16], labels i32 [B] -> mean cross-entropy, and the share that is right
Loss loss(Trace& trace, const BatchTensors& batch) {
  Tensor x = batch["images"];
  for (int i = 0; i < 2; ++i) {
    const Scope block(trace, "blocks." + std::to_string(i));
    x = nn::conv2d(trace, "conv", x, 16 << i, {.kernel = 3, .padding = 1, .bias = false});
    x = max_pool(relu(nn::batch_norm(trace, "norm", x)), {.kernel = 2});
  }
  const Tensor logits = nn::linear(trace, "classes", reduce_mean(x, {2, 3}), kDirections);
  const Tensor hits = equal(cast(argmax(logits, 1), i32), batch["labels"]);
  Loss made = reduce_mean(cross_entropy(logits, batch["labels"]), {0});
  made.metrics = {{"accuracy", reduce_mean(cast(hits, f32), {0})}};
  return made;
}

// Stripes of unit height under noise of the same deviation.
void fill(uint64_t /*position*/, BatchView batch) {
  PhiloxStream draws = batch.random();
  float* pixel = batch.f32("images").data();
  for (int32_t& label : batch.i32("labels")) {
    label = static_cast<int32_t>(draws.below(kDirections));
    const double phase = draws.uniform(0, 2 * std::numbers::pi);
    const double angle = std::numbers::pi * label / kDirections;
    for (int64_t row = 0; row < kSide; ++row)
      for (int64_t column = 0; column < kSide; ++column) {
        const double along = std::cos(angle) * static_cast<double>(column) +
                             std::sin(angle) * static_cast<double>(row);
        *pixel++ = static_cast<float>(std::sin(0.8 * along + phase) + draws.normal());
      }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const OwnBatches data =
      batches({{"images", f32, {32, 1, kSide, kSide}}, {"labels", i32, {32}}}, fill);
  OwnModel model{.loss = loss, .data = data, .unit = "images", .evaluation = data};
  model.metrics = {{"accuracy", "accuracy"}};
  model.settings = {"train.steps=300", "optim.learning_rate=0.003"};
  return app(argc, argv, model);
}

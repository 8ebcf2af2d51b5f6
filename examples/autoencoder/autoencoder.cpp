// A variational autoencoder: images of a soft spot, encoded in four numbers with noise that the step itself draws.
// Kingma, Welling 2014, arXiv:1312.6114.
//
// usage: autoencoder train [key=value ...], autoencoder eval RUN, autoencoder --help
#include <cmath>

#include "fullbore/app/own_model.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

namespace {

constexpr int64_t kSide = 8;
constexpr int64_t kCode = 4;

struct Keys {
  bool given_noise = false;
  bool operator==(const Keys&) const = default;
};

// images f32 [B,64] in [0, 1] -> the negative evidence lower bound in nats an image: what an image costs by its
// code, and the code by its prior
Loss loss(Trace& trace, const BatchTensors& batch) {
  const Tensor images = batch["images"];
  const Tensor seen = gelu(nn::linear(trace, "encoder.hidden", images, 128));
  const Tensor mean = nn::linear(trace, "encoder.mean", seen, kCode);
  const Tensor log_variance = nn::linear(trace, "encoder.log_variance", seen, kCode);
  const Tensor noise =
      batch.keys<Keys>().given_noise ? batch["noise"] : random_normal(trace.random(), mean.type());
  const Tensor code = mean + exp(0.5 * log_variance) * noise;
  const Tensor shown = gelu(nn::linear(trace, "decoder.hidden", code, 128));
  const Tensor logits = nn::linear(trace, "decoder.pixels", shown, kSide * kSide);
  const Tensor reconstruction =
      reduce_mean(reduce_sum(softplus(logits) - images * logits, {1}), {0});
  const Tensor divergence =
      reduce_mean(0.5 * reduce_sum(mean * mean + exp(log_variance) - log_variance - 1.0, {1}), {0});
  Loss made = reconstruction + divergence;
  made.metrics = {{"reconstruction", reconstruction}, {"divergence", divergence}};
  return made;
}

// A spot of any place and width. The noise is for model.given_noise alone.
void fill(uint64_t /*position*/, BatchView batch) {
  PhiloxStream draws = batch.random();
  const std::span<float> images = batch.f32("images");
  for (size_t first = 0; first < images.size(); first += kSide * kSide) {
    const double across = draws.uniform(1, kSide - 2), down = draws.uniform(1, kSide - 2);
    const double width = draws.uniform(1, 3);
    for (size_t i = 0; i < kSide * kSide; ++i) {
      const double x = static_cast<double>(i % kSide) - across;
      const double y = static_cast<double>(i / kSide) - down;
      images[first + i] = static_cast<float>(std::exp(-(x * x + y * y) / (width * width)));
    }
  }
  draws.normals(batch.f32("noise"), 0, 1);
}

}  // namespace

int main(int argc, char** argv) {
  const OwnBatches data =
      batches({{"images", f32, {64, kSide * kSide}}, {"noise", f32, {64, kCode}}}, fill);
  OwnModel model{.loss = loss, .data = data, .unit = "images", .evaluation = data};
  model.keys = {key<&Keys::given_noise>("model.given_noise", {}, "noise comes with the batch")};
  model.settings = {"train.steps=500", "optim.learning_rate=0.003"};
  return app(argc, argv, model);
}

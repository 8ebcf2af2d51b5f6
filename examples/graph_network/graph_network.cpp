// Graphs of varying size: charged particles, each pushed by those that an edge leads from. A network of messages learns
// the forces. Batches come in three shapes; a graph is padded to the shape that it has, and a program is compiled for each.
//
// usage: graph_network train [key=value ...], graph_network eval RUN, graph_network --help
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fullbore/app/own_model.h"
#include "fullbore/nn/initializers.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

namespace {

constexpr int64_t kWidth = 64;

// Begins as a linear layer of PyTorch does.
Tensor linear(Trace& trace, const std::string& name, Tensor x, int64_t outputs) {
  return nn::linear(trace, name, x, outputs,
                    {.weight_initializer = nn::kaiming_uniform(x.dim(-1))});
}

// The two ends of each edge beside one another: h f32 [N,C] -> [E,2 C].
Tensor ends_of(Tensor h, const BatchTensors& batch) {
  const std::array ends = {gather(h, batch["senders"]), gather(h, batch["receivers"])};
  return concat(ends, 1);
}

// particles f32 [N,3] (place, charge), senders and receivers i32 [E], forces f32 [N,2], present f32 [N] -> mean squared
// error over the particles that are present. Padding edges have the index N, which reads zeros and writes nothing.
Loss loss(Trace& trace, const BatchTensors& batch) {
  const Tensor present = batch["present"];
  Tensor h = tanh(linear(trace, "input", batch["particles"], kWidth));
  for (int i = 0; i < 2; ++i) {
    const Scope round(trace, "rounds." + std::to_string(i));
    Tensor message = gelu(linear(trace, "first", ends_of(h, batch), kWidth));
    message = linear(trace, "second", message, kWidth);
    const Tensor received = scatter_add(message, batch["receivers"], h.dim(0));
    h = nn::layer_norm(trace, "norm", h + linear(trace, "update", received, kWidth));
  }
  const Tensor error = linear(trace, "force", h, 2) - batch["forces"];
  const Tensor squares = reduce_mean(error * error, {1});
  const Tensor count = reduce_sum(present, {0});
  return Loss(reduce_sum(squares * present, {0}) / count, count);
}

// Up to N particles in a square, at least three quarters of them, and three edges to each from others or itself.
void fill(uint64_t /*position*/, BatchView batch) {
  PhiloxStream draws = batch.random();
  const auto most = static_cast<uint64_t>(batch.shape("particles")[0]);
  const uint64_t count = most - draws.below(most / 4 + 1);
  const std::span<float> particles = batch.f32("particles"), forces = batch.f32("forces"),
                         present = batch.f32("present");
  const std::span<int32_t> senders = batch.i32("senders"), receivers = batch.i32("receivers");
  for (uint64_t i = 0; i < most; ++i) {
    const bool is_there = i < count;
    present[i] = is_there ? 1 : 0;
    for (uint64_t axis = 0; axis < 3; ++axis)
      particles[3 * i + axis] = is_there ? static_cast<float>(draws.uniform(-1, 1)) : 0;
    forces[2 * i] = forces[2 * i + 1] = 0;
  }
  for (uint64_t edge = 0; edge < senders.size(); ++edge) {
    const bool is_there = edge < 3 * count;
    const uint64_t to = is_there ? edge / 3 : most;
    const uint64_t from = is_there ? draws.below(count) : most;
    senders[edge] = static_cast<int32_t>(from);
    receivers[edge] = static_cast<int32_t>(to);
    if (!is_there) continue;
    const float across = particles[3 * to] - particles[3 * from];
    const float up = particles[3 * to + 1] - particles[3 * from + 1];
    const float push =
        particles[3 * to + 2] * particles[3 * from + 2] / (0.25F + across * across + up * up);
    forces[2 * to] += push * across;
    forces[2 * to + 1] += push * up;
  }
}

std::vector<BatchField> graph(int64_t particles) {
  return {{"particles", f32, {particles, 3}},
          {"senders", i32, {3 * particles}},
          {"receivers", i32, {3 * particles}},
          {"forces", f32, {particles, 2}},
          {"present", f32, {particles}}};
}

}  // namespace

int main(int argc, char** argv) {
  OwnBatches data = batches(graph(256), fill);
  data.other_shapes = {graph(128), graph(64)};
  data.shape_at = [](uint64_t position) { return position % 3; };
  OwnModel model{.loss = loss, .data = data, .batch_axis = -1, .unit = "particles"};
  model.evaluation = data;
  model.settings = {"train.steps=600", "optim.learning_rate=0.003"};
  return app(argc, argv, model);
}

// A model of one's own with every command of `fullbore`: docs/guide/own-model.md.
//
// usage: points train [key=value ...], points eval RUN, points --help
// [program]
#include "fullbore/app/own_model.h"
#include "fullbore/nn/modules.h"

using namespace fullbore;

Loss loss(Trace& trace, const BatchTensors& batch) {
  const Tensor hidden = tanh(nn::linear(trace, "first", batch["points"], 64));
  return reduce_mean(cross_entropy(nn::linear(trace, "last", hidden, 2), batch["labels"]), {0});
}

// Two clouds of points, two apart.
void fill(uint64_t /*position*/, BatchView batch) {
  PhiloxStream draws = batch.random();  // of this batch: by the seed and its position
  float* point = batch.f32("points").data();
  for (int32_t& label : batch.i32("labels")) {
    label = static_cast<int32_t>(draws.below(2));
    for (int axis = 0; axis < 2; ++axis) *point++ = static_cast<float>(draws.normal() + 2 * label);
  }
}

int main(int argc, char** argv) {
  const OwnBatches data = batches({{"points", f32, {64, 2}}, {"labels", i32, {64}}}, fill);
  return app(argc, argv,
             {.loss = loss, .data = data, .batch_axis = 0, .unit = "points", .evaluation = data});
}
// [end]

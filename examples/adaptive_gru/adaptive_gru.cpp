// Adaptive computation: a gated recurrent unit looks at a row of bits as often as it wants, at most eight times, and then
// says whether an odd number of them is set. How often is learned: each look costs. Graves 2016, arXiv:1603.08983.
//
// usage: adaptive_gru train [key=value ...], adaptive_gru eval RUN, adaptive_gru --help
#include "fullbore/app/own_model.h"
#include "fullbore/nn/gru.h"
#include "fullbore/nn/modules.h"
#include "fullbore/trace/control.h"

using namespace fullbore;

namespace {

constexpr int64_t kBits = 6;
constexpr int64_t kWidth = 64;
constexpr double kLeast = 0.01;  // a row whose probability to go on falls below it has halted
constexpr double kPrice = 0.01;  // of a look

// Of each row: what the unit remembers [B,H], the mean of its memories by halting probability [B,H], the probability
// that is left [B,1], and looks so far plus what was left at the last one [B,1].
struct Thought {
  Tensor memory, mean, left, looks;
};

// bits f32 [B,6], odd i32 [B] -> cross-entropy plus the price of the looks
Loss loss(Trace& trace, const BatchTensors& batch) {
  const Tensor bits = batch["bits"];
  const nn::GruWeights cell = nn::gru_weights(trace, "cell", kBits, kWidth);
  // In the graph of the batch, which may be a microbatch's, and not in that around it.
  const Tensor none = full(bits.builder(), {f32, {bits.dim(0), kWidth}}, 0);
  const Tensor zero = full(bits.builder(), {f32, {bits.dim(0), 1}}, 0);
  const auto look = [&](const Thought& now) {
    const Tensor memory = nn::gru_step(bits, now.memory, cell);
    const Tensor halts = sigmoid(nn::linear(trace, "halt", memory, 1));
    const Tensor goes_on = cast(greater(now.left, 0.0), f32);
    const Tensor is_last = less(now.left - halts, kLeast);
    const Tensor share = select(is_last, now.left, halts);
    const Tensor rest = cast(is_last, f32) * now.left;
    const Thought next{memory, now.mean + share * memory, now.left - share,
                       now.looks + goes_on + rest};
    return Iteration<Thought>{next, less_equal(reduce_max(next.left, {0, 1}), 0.0)};
  };
  const WhileResult<Thought> thought =
      while_loop(Thought{none, none, zero + 1.0, zero}, {.at_most = 8}, look);
  const Tensor logits = nn::linear(trace, "answer", thought.state.mean, 2);
  const Tensor hits = equal(cast(argmax(logits, 1), i32), batch["odd"]);
  const Tensor looks = reduce_mean(thought.state.looks, {0, 1});
  Loss made = reduce_mean(cross_entropy(logits, batch["odd"]), {0}) + kPrice * looks;
  made.metrics = {{"accuracy", reduce_mean(cast(hits, f32), {0})}, {"looks", looks}};
  return made;
}

void fill(uint64_t /*position*/, BatchView batch) {
  PhiloxStream draws = batch.random();
  float* bit = batch.f32("bits").data();
  for (int32_t& odd : batch.i32("odd")) {
    odd = 0;
    for (int64_t i = 0; i < kBits; ++i) {
      const auto drawn = static_cast<int32_t>(draws.below(2));
      *bit++ = static_cast<float>(2 * drawn - 1);
      odd ^= drawn;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const OwnBatches data = batches({{"bits", f32, {64, kBits}}, {"odd", i32, {64}}}, fill);
  OwnModel model{.loss = loss, .data = data, .unit = "rows", .evaluation = data};
  model.metrics = {{"accuracy", "accuracy"}};
  model.settings = {"train.steps=1000", "optim.learning_rate=0.003"};
  return app(argc, argv, model);
}

#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/nn/mamba2.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"
#include "fullbore/nn/rwkv6.h"
#include "fullbore/train/recurrent_model.h"

namespace fullbore::testing {

constexpr int64_t kSequenceVocabulary = 11;
constexpr int64_t kSequenceWidth = 8;

/// Time mixing and a state-space layer, side by side: all four kinds of memory that there are.
struct SmallRecurrentModel {
  static std::vector<RecurrentTensor> states(int64_t sequences) {
    return {{"previous", {DType::f32, {sequences, kSequenceWidth}}},
            {"memory", {DType::f32, {sequences, 2, 4, 4}}},
            {"history", {DType::f32, {sequences, 3, 24}}},
            {"state_space", {DType::f32, {sequences, 2, 4, 8}}}};
  }

  /// Normalised hidden values [B,T,C], and what is remembered behind them.
  static std::pair<Tensor, std::vector<Tensor>> run(Trace& trace, Tensor tokens,
                                                    std::span<const Tensor> states) {
    const Tensor table = nn::embedding_table(trace, "embed", kSequenceVocabulary, kSequenceWidth,
                                             Initializer::normal(1));
    const Tensor x = nn::rms_norm(trace, "norm", gather(table, tokens));
    nn::TimeMixOptions time{
        .heads = 2,
        .mix_rank = 2,
        .decay_rank = 3,
        .chunk = 4,
        .initializers = nn::TimeMixInitializers::of_layer(0, 2, kSequenceWidth)};
    time.initializers.output = time.initializers.key = time.initializers.value =
        time.initializers.receptance = Initializer::normal(0.5);
    nn::Mamba2Options mamba{
        .inner = 16, .heads = 2, .states = 4, .chunk = 4, .projections = Initializer::normal(0.5)};
    if (!states.empty()) {
      time.state = {states[0], states[1]};
      mamba.state = {states[2], states[3]};
    }
    const nn::TimeMixResult r = nn::rwkv6_time_mix(trace, "rwkv", x, time);
    const nn::Mamba2Result m = nn::mamba2(trace, "mamba", x, mamba);
    return {nn::rms_norm(trace, "final_norm", x + r.y + m.y),
            {r.state.previous, r.state.memory, m.state.history, m.state.memory}};
  }

  static Tensor logits_of(Trace& trace, Tensor hidden) {
    return nn::linear(trace, "head", hidden, kSequenceVocabulary,
                      {.bias = false, .weight_initializer = Initializer::normal(0.5)});
  }

  static RecurrentModel model() {
    RecurrentModel model;
    model.states = states;
    model.loss = [](Trace& trace, std::span<const Tensor> batch, std::span<const Tensor> before) {
      const auto [hidden, after] = run(trace, batch[0], before);
      return SegmentLoss{reduce_mean(cross_entropy(logits_of(trace, hidden), batch[1]), {0, 1}),
                         after};
    };
    model.logits = [](Trace& trace, Tensor tokens, std::span<const Tensor> before) {
      const auto [hidden, after] = run(trace, tokens, before);
      const int64_t last = tokens.dim(1) - 1;
      return SegmentLogits{logits_of(trace, squeeze(slice(hidden, 1, last, last + 1), 1)), after};
    };
    return model;
  }
};

}  // namespace fullbore::testing

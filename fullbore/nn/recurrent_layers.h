#pragma once
#include <string>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

/// Recurrent layers over sequences: names, layouts and first values as PyTorch's, so that weights go from one to the
/// other. For one step at a time there is gru.h.
namespace fullbore::nn {

struct RecurrentOptions {
  int64_t layers = 1;
  bool bidirectional =
      false;  ///< a second direction, from the last step to the first, beside the first
  bool batch_first = false;  ///< x and outputs are [B,T,...]
  Tensor hidden = {};        ///< at first: [layers * directions,B,H]; none: zeros
  Tensor cell = {};          ///< of lstm() alone, likewise
  int64_t segments = 0;      ///< of the gradient's memory: LoopOptions::segments
};
struct RecurrentResult {
  Tensor outputs;    ///< of the last layer, [T,B,directions * H] (batch_first: [B,T,...])
  Tensor hidden;     ///< at the end of each layer and direction, [layers * directions,B,H]
  Tensor cell = {};  ///< of lstm() alone, likewise
};
/// Gated recurrent units of H = `units`: x [T,B,I] floating. See gru_step() for the equations.
///
/// Parameters of layer l: `<name>.weight_ih_l<l>` [3 H,I], `.weight_hh_l<l>` [3 H,H], `.bias_ih_l<l>` and `.bias_hh_l<l>`
/// [3 H], with `_reverse` behind them for the second direction; f32, cast to x's dtype where they are used, at first uniform
/// in +-1 / sqrt(H). What a layer makes of its inputs is one matmul over all steps.
///
/// Errors:  UsageError for other ranks, and first states that do not fit.
/// Example: auto [outputs, hidden] = nn::gru(trace, "reader", embedded, 128, {.batch_first = true});
RecurrentResult gru(Trace& trace, const std::string& name, Tensor x, int64_t units,
                    const RecurrentOptions& options = {}, SourceLoc loc = SourceLoc::here());

/// Long short-term memory: as gru(), with weights of four gates in the order i, f, g, o.
///
///   c' = sigmoid(f) c + sigmoid(i) tanh(g)
///   h' = sigmoid(o) tanh(c')      each gate W_i x + b_i + W_h h + b_h
///
/// Source: Hochreiter, Schmidhuber 1997; with forget gates, Gers et al. 2000.
RecurrentResult lstm(Trace& trace, const std::string& name, Tensor x, int64_t units,
                     const RecurrentOptions& options = {}, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn

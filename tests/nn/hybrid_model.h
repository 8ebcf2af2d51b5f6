#pragma once
#include <map>
#include <string>
#include <vector>

#include "fullbore/ir/literal.h"
#include "fullbore/nn/mamba2.h"
#include "fullbore/nn/rwkv6.h"

namespace fullbore {

/// A language model whose every block runs both branches side by side, normalises each, and adds them with
/// a gain for each channel.
struct Hybrid {
  bool finch = true;  ///< else decays that do not depend on the input
  int64_t vocabulary = 11, width = 8, layers = 2, heads = 2;
  int64_t mix_rank = 2, decay_rank = 3, inner = 16, mamba_heads = 2, states = 4;
};

struct LayerState {
  nn::TimeMixState time_mix;
  nn::Mamba2State mamba;
};

struct Run {
  Tensor logits;
  std::vector<LayerState> states;
};

/// Logits [B,T,V] of tokens [B,T] and the states behind them; no states: a stream begins.
Run run(Trace& trace, const Hybrid& model, Tensor tokens, const std::vector<LayerState>& states,
        int64_t chunk);

/// Number of elements of the parameters whose names have the part.
int64_t parameter_count(const Trace& trace, const std::string& part = "");

/// The sizes of the recorded models.
Hybrid preset(bool finch);

/// The parameters in the record's order, each theta_i = centre + size sin(0.7 i + 1.3 number + 0.5).
std::map<std::string, Literal> golden_parameters(const Trace& trace, const Hybrid& model);

}  // namespace fullbore

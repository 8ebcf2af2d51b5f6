#pragma once
#include <vector>

#include "fullbore/text/trained_text_model.h"
#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {

/// Tokens of held-out texts, of the same length each.
using ProbeTexts = std::vector<std::vector<int32_t>>;

/// What a branch remembers while it reads texts token by token.
struct BranchMemory {
  std::vector<double> norms;  ///< behind each token, mean over texts, of all layers together
  double cosine =
      0;  ///< of the states behind a token and the next, mean over texts, layers and time
  double variance = 0;  ///< across texts of a value behind the last token, mean over the values
  double top_singular =
      0;  ///< share of a head's five largest singular values, mean over heads and layers
  double saturated = 0;  ///< share of values beyond 5
  bool finite = true;
  bool repeatable = true;  ///< is the state behind a text that is read twice the same?
};
struct StateProbe {
  BranchMemory rwkv, mamba;
};

/// Reads all texts at once, a token at a time, and one of them twice.
StateProbe probe_states(const HybridConfig& config, TrainedModel& model, const ProbeTexts& texts);

/// Mean relative change of the logits behind texts when their first token is another.
double information_flow(const HybridConfig& config, TrainedModel& model, const ProbeTexts& texts);

}  // namespace fullbore

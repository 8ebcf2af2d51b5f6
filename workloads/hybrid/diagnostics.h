#pragma once
#include <string>
#include <vector>

#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {

/// A figure of how a hybrid model's branches fare on a batch, f32 [].
struct HybridFigure {
  std::string name;
  Tensor value;
};
/// Out of tensors that the model makes anyway: where nobody reads them they are not in the program. For every layer
///
///   layers.0.variance/rwkv, /mamba   of what the branch gives to the fusion, over all tokens and channels
///   layers.0.gain/rwkv, /mamba       of gains: mean magnitude of the gains
///   layers.0.gate/mean, /deviation, /least, /most, /open, /shut   of gates: the latter two the shares of gates above
///                                    0.95 and below 0.05
///   layers.0.share/rwkv              of weighted sums
///
/// and `channel_entropy`, mean over tokens of the entropy in nats of the softmax over channels of both branches' sum in
/// the last layer.
std::vector<HybridFigure> hybrid_figures(const HybridResult& result);

}  // namespace fullbore

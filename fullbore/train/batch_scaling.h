#pragma once
#include <cstdint>
#include <string>

namespace fullbore {

struct Config;

/// Keys optim.batch_scaling and optim.base_batch_size: a learning rate that was found for one batch, for another.
struct BatchScalingKeys {
  std::string batch_scaling = "none";
  int64_t base_batch_size = 0;  ///< 0: not given
  bool operator==(const BatchScalingKeys&) const = default;
};

/// What optim.learning_rate and optim.minimum_learning_rate are multiplied by: with n = train.batch_size over
/// optim.base_batch_size, n for `linear` (Goyal et al. 2017, arXiv 1706.02677, of SGD), sqrt(n) for `root` (Malladi et al.
/// 2022, arXiv 2205.10287, of adaptive optimisers), else 1. Equal parts of a batch (engine.accumulate) change nothing.
double learning_rate_scale(const Config& config);

}  // namespace fullbore

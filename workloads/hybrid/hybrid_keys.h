#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Keys of model.name=hybrid, of the sections that they are grouped by here.
struct HybridKeys {
  struct Model {
    std::string branch = "finch";
    std::string fusion = "gains";
    int64_t mix_rank = 32;
    int64_t decay_rank = 64;
    int64_t inner = 256;
    int64_t mamba_heads = 4;
    int64_t states = 64;
    int64_t convolution = 4;
    int64_t hidden = 512;
    bool channel_mix = false;
    int64_t chunk = 64;
    double gate_start = 0.5;
    bool rwkv_lm_init = true;
    bool recorded_init = false;
    bool learned_state = false;
    bool operator==(const Model&) const = default;
  } model;
  struct Data {
    std::string initial_state = "zero";
    int64_t segments = 1;
    double state_noise = 1;
    bool operator==(const Data&) const = default;
  } data;
  bool diagnostics = false;
  bool operator==(const HybridKeys&) const = default;
};

inline const HybridKeys& hybrid_keys(const Config& config) { return config.get<HybridKeys>(); }
inline HybridKeys& hybrid_keys(Config& config) { return config.get<HybridKeys>(); }

}  // namespace fullbore

#pragma once
#include <string>

#include "fullbore/optim/optimizer.h"

namespace fullbore {

struct Config;

/// Keys of how a run stores what persists from step to step; of section engine, as engine.precision is.
struct StorageKeys {
  std::string moments = "f32";
  bool master_weights = true;
  std::string rounding = "stochastic";
  std::string offload = "none";
  bool operator==(const StorageKeys&) const = default;
};

StorageOptions storage_options(const Config& config);
bool has_master_weights(const Config& config);
/// engine.offload=optimizer: how open_device() is asked.
bool has_moments_in_host(const Config& config);

}  // namespace fullbore

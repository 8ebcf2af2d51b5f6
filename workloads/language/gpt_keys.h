#pragma once
#include <string>

#include "fullbore/train/config.h"

namespace fullbore {

/// Keys of model.name=gpt beside those of all models of texts.
struct GptKeys {
  bool bias = false;
  bool tie_head = true;
  std::string activation = "gelu";
  std::string norm = "layer";
  std::string positions = "learned";
  bool operator==(const GptKeys&) const = default;
};

inline const GptKeys& gpt_keys(const Config& config) { return config.get<GptKeys>(); }
inline GptKeys& gpt_keys(Config& config) { return config.get<GptKeys>(); }

}  // namespace fullbore

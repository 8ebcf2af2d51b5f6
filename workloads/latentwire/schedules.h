#pragma once
#include <cstdint>

namespace fullbore::latentwire {

/// What of a step is decided by its number i of n optimiser steps.

/// Weight of the first token's loss.
struct FirstWeight {
  enum class Kind : uint8_t {
    none,    ///< w in every step
    warmup,  ///< from 0 to w in a line over 200 steps
    cosine   ///< `peak` for hold * n steps, then to w along half a cosine
  };
  Kind kind = Kind::none;
  double weight = 0.5;
  double peak = 0;  ///< 0: max(8, 2 weight)
  double hold = 0.4;

  double at(int64_t step, int64_t steps) const;
};

/// start + (end - start) p^power with p = i / (n - 1), clamped to 1.
struct Curriculum {
  double start = 1;
  double end = 1;
  double power = 1;

  double at(int64_t step, int64_t steps) const;
  int64_t whole_at(int64_t step, int64_t steps) const;  ///< rounded half to even
};

/// Steps in which the models read the text in place of the latents.
struct TextSteps {
  int64_t warmup = 0;           ///< W: even steps below it
  double tail_probability = 0;  ///< of each step from there on
  uint64_t key = 1;             ///< of its draws

  bool is_text(int64_t step) const;
  /// Factor of the latents' losses in a text step: from 0.2 to 1 in a line over W steps.
  double latent_scale(int64_t step) const;
};

}  // namespace fullbore::latentwire

#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "fullbore/trace/trace.h"

namespace fullbore::nn {

/// How a model that was trained on short texts reads long ones: frequencies are lowered, as config.json of its
/// checkpoint says under `rope_scaling`.
struct RotaryScaling {
  /// What happens to a frequency f, whose wave is 2 pi / f positions long.
  enum class Kind : uint8_t {
    none,
    linear,  ///< all: f / factor
    /// Waves longer than original / low: f / factor; shorter than original / high: f; between them interpolated
    /// linearly in original / wave. Llama 3.1 (Grattafiori et al. 2024, arXiv:2407.21783).
    llama3,
  };
  Kind kind = Kind::none;
  double factor = 1;
  double low = 1;
  double high = 4;
  int64_t original = 8192;  ///< positions of the first training
  bool operator==(const RotaryScaling&) const = default;
};

/// Angle by which one position turns pair i of a head's D channels: theta^(-2 i / D), scaled. D / 2 of them.
/// Source: Su et al. 2021, arXiv:2104.09864, section 3.2.2.
/// Errors: UsageError for an odd or no D, and theta that is not positive.
std::vector<double> rotary_frequencies(int64_t width, double theta,
                                       const RotaryScaling& scaling = {});

/// Cosines and sines of each position, made once for all layers.
struct RotaryTables {
  Tensor cosine;  ///< f32 [B or 1,T,1,D]: of each pair twice, D / 2 apart
  Tensor sine;    ///< likewise
};
/// positions: integer [T], the same in all rows, or [B,T].
RotaryTables rotary_tables(Tensor positions, const std::vector<double>& frequencies,
                           SourceLoc loc = SourceLoc::here());

/// Turns the pairs (i, i + D / 2) of x [B,T,N,D] by the angles of their positions: the half-split form of the Llama family.
///   y_i         = x_i cos - x_{i + D/2} sin
///   y_{i + D/2} = x_{i + D/2} cos + x_i sin
/// Heads from `turned` on are passed through as they are; -1: all are turned. The result has x's dtype.
Tensor rotate(Tensor x, const RotaryTables& tables, int64_t turned = -1,
              SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn

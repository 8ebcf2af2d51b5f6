#pragma once
#include "fullbore/ops/rules.h"

/// What the ops that draw share. Their inputs end in [seed, step, (iteration)], i64 scalars, and their
/// attribute `site` tells them apart.
///
/// How draws are told apart. The key is the seed. Of the 128 bits of the counter,
///   counter_high = step + site * 2^40     step < 2^40, 0 <= site < 2^23
///   counter_low  = element + iteration * 2^32  element < 2^32 (checked), 0 <= iteration < 2^31
/// so no two elements of two draws of two iterations of two steps ever share a counter. Eight neighbours whose dropout
/// is decided together are one element here: an eighth of its 128 bits is the number of each.
namespace fullbore {

inline constexpr int64_t kSites = int64_t{1} << 23;
inline const TensorType kIndex{DType::i64, {}};  ///< a seed, a step, an iteration

/// The operands from `first` on are a source, and the attribute site is in range.
void require_source(const OpCall& call, size_t first);
/// Of an op that only draws: inputs seed, step, (iteration), attributes site and shape. The shape.
Shape require_draw(const OpCall& call);
/// Fails if the shape has more elements than a counter tells apart.
void require_drawable(const OpCall& call, const Shape& shape);
/// 64 bits for each element of the shape, i64: those of philox, or of philox_upper.
enum class DrawHalf : uint8_t { lower, upper };
Tensor draw_bits(std::span<const Tensor> source, int64_t site, const Shape& shape,
                 DrawHalf half = DrawHalf::lower);
/// Elements that one draw decides.
inline constexpr int64_t kDrawElements = 8;
/// Which elements are kept: [..., n] draws, [..., 8 n] truths. Eighth e of a draw's bits, from the lowest on, is the
/// number of its element e.
Tensor kept_by_draws(std::span<const Tensor> source, int64_t site, const Shape& draws,
                     double probability);
/// The attribute probability is there, in [0, 1).
void require_probability(const OpCall& call);
/// Draws of 16 bits below it drop an element: `probability` to the nearest multiple of 2^-16, as x / (1 - p) must take
/// it to have no bias, and never everything.
int64_t dropout_threshold(double probability);
/// Where dropout keeps an element; `source` as above.
Tensor dropout_mask(std::span<const Tensor> source, int64_t site, double probability,
                    const Shape& shape, SourceLoc loc);
/// Seed, step and iteration as operands of `op`.
std::vector<Tensor> source_operands(std::string_view op, const RandomSource& source, SourceLoc loc);

}  // namespace fullbore

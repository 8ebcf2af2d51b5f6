#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// State of role `control`: the largest magnitudes that operands had, f32 [3 n, kFp8History], newest first. Rows 3 i to 3 i + 2
/// are of the i-th of TracedStep::fp8_layers: x, W, dy. 0: not known.
inline constexpr const char* kFp8Amax = "fp8_amax";
/// Steps that are remembered.
inline constexpr int64_t kFp8History = 16;
/// How much larger than what is remembered an operand may be before it is cut off. 1, as in NVIDIA's Transformer Engine by
/// default: room above is taken from the least numbers.
inline constexpr double kFp8Margin = 1;

/// A training step whose matmuls of weights (fp8_layers.h: not the first, not the last, not in modules that match
/// `excluded`) are products of 8-bit floats (ops/fp8_matmul.h): y of x and W in e4m3, dx of dy in e5m2 and W in e4m3, dW of
/// dy in e5m2 and x in e4m3.
///
/// Scales are delayed: that of an operand follows from its largest magnitudes of the last kFp8History steps, the format's
/// largest number / (kFp8Margin x the largest of them), within 2^-60 and 2^60, so that a product does not wait for what it
/// multiplies to be looked at. An operand of which nothing is known yet, that of a run's first step, is scaled by its own. Each
/// step puts its largest magnitudes before the others, of microbatches the largest; what is infinite or NaN is put as 0, and a
/// step that is skipped puts nothing.
///
/// State and initial values of kFp8Amax are added where there is such a matmul. Matmuls in loops of the model's own, and those of
/// weights without a gradient, stay as they were.
/// Source: Micikevicius et al. 2022, arXiv:2209.05433, section 3.
TracedStep with_fp8_matmuls(TracedStep step, std::span<const std::string> excluded);

/// The evaluation of such a step: the same matmuls, by the State's scales, which it reads alone. `layers`: of the step.
Graph with_fp8_evaluation(const Graph& graph, std::span<const std::string> layers);

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/nn/language_model_loss.h"

namespace fullbore::latentwire {

/// An answer of a batch: its tokens with the terminator, and the first of them that is not white space alone.
struct AnswerLength {
  int64_t tokens = 0;
  int64_t first = 0;
};

/// What each token's loss counts in a batch, so that every loss is a sum over tokens and may be taken of any part of it:
///
///   all     1 / (number of tokens)                                   the mean over tokens
///   first   1 / B at the first content token of a row                the mean over rows
///   early   1 / (n_t |S|), t in S = {t < K, n_t > 0}                 the mean over places of means over rows
///
/// n_t is how many rows have a token t. All f32 [B,T], 0 behind a row's tokens.
struct AnswerFactors {
  std::vector<float> all, first, early;
};
AnswerFactors answer_factors(std::span<const AnswerLength> answers, int64_t length, int64_t early);

/// Sum of factors * losses, both [B,T] or of any one shape: f32 [].
Tensor factored_sum(Tensor losses, Tensor factors);

/// Cross-entropy of the head's rows [B,T] by targets i32 [B,T]: f32 [B,T], 0 where a target is no token. All logits exist.
Tensor token_losses(Trace& trace, const LanguageModelHead& head, Tensor targets);
/// factored_sum() of the same without the logits: some rows of them exist at a time (ops.h, linear_cross_entropy).
Tensor tiled_losses(Trace& trace, const LanguageModelHead& head, Tensor targets, Tensor factors);

/// factor * clamp(first / all, 1, 8), the ratio without a gradient. All f32 []. Nothing is read by the host.
Tensor autoscaled(Tensor weight, Tensor first, Tensor all);

/// Sum over places of factors * tau^2 KL(teacher || student), both softened by tau: logits [B,K,V], factors f32 [B,K].
/// No gradient goes to the teacher. Hinton, Vinyals, Dean 2015, arXiv:1503.02531.
Tensor distillation(Tensor teacher, Tensor student, Tensor factors, double temperature);
/// Sum over places of factors * mean over channels of the squared difference: states [B,K,d].
Tensor state_distillation(Tensor teacher, Tensor student, Tensor factors);

/// How far vectors of the prefix are from embeddings.
enum class Distance : uint8_t { cosine, squared, both };
/// Sum of factors * distance over [B,J] pairs of vectors [B,J,d]: 1 - cosine, the mean squared difference, or their sum.
Tensor vector_distance(Tensor a, Tensor b, Tensor factors, Distance distance);

/// Mean over rows of -H(softmax(logits)): logits [B,V] -> f32 []. Punishes what is all one token.
Tensor negative_entropy(Tensor logits);
/// Mean over channels of (mean(prefix) - mean)^2 + (deviation(prefix) - deviation)^2 over all vectors of prefix [B,M,d].
Tensor statistics_distance(Tensor prefix, Tensor mean, Tensor deviation);
/// (x - target)^2, averaged over x: of an adapter's scale and of row_rms().
Tensor squared_distance(Tensor x, Tensor target);

}  // namespace fullbore::latentwire

#include "workloads/latentwire/prefix_losses.h"

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/ir/fp32_scope.h"

namespace fullbore::latentwire {
namespace {

constexpr double kMostAutoscale = 8, kLeastNorm = 1e-12;

Tensor full_precision(Tensor x) {
  return cast(x, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
}

Tensor mean_squared_difference(Tensor a, Tensor b) {
  const Tensor difference = a - b;
  return reduce_mean(difference * difference, {a.rank() - 1});
}

}  // namespace

AnswerFactors answer_factors(std::span<const AnswerLength> answers, int64_t length, int64_t early) {
  std::vector<int64_t> rows_at(static_cast<size_t>(length));
  int64_t tokens = 0, places = 0;
  for (const AnswerLength& answer : answers) {
    FB_CHECK(answer.tokens <= length && answer.first < std::max<int64_t>(1, answer.tokens),
             "{} tokens of {}, the first {}", answer.tokens, length, answer.first);
    for (int64_t t = 0; t < answer.tokens; ++t) ++rows_at[static_cast<size_t>(t)];
    tokens += answer.tokens;
  }
  for (int64_t t = 0; t < std::min(early, length); ++t)
    places += rows_at[static_cast<size_t>(t)] > 0 ? 1 : 0;
  const size_t count = answers.size() * static_cast<size_t>(length);
  AnswerFactors factors{std::vector<float>(count), std::vector<float>(count),
                        std::vector<float>(count)};
  for (size_t row = 0; row < answers.size(); ++row)
    for (int64_t t = 0; t < answers[row].tokens; ++t) {
      const size_t at = row * static_cast<size_t>(length) + static_cast<size_t>(t);
      const int64_t rows = rows_at[static_cast<size_t>(t)];
      factors.all[at] = static_cast<float>(1.0 / static_cast<double>(tokens));
      if (t == answers[row].first)
        factors.first[at] = static_cast<float>(1.0 / static_cast<double>(answers.size()));
      if (t < early)
        factors.early[at] = static_cast<float>(1.0 / static_cast<double>(rows * places));
    }
  return factors;
}

Tensor factored_sum(Tensor losses, Tensor factors) {
  const Fp32Scope island(losses.builder());
  const Tensor each = full_precision(losses);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < each.rank(); ++axis) axes.push_back(axis);
  return reduce_sum(each * cast(factors, each.dtype()), axes);
}

Tensor token_losses(Trace& trace, const LanguageModelHead& head, Tensor targets) {
  return cross_entropy(language_model_logits(trace, head), targets);
}

Tensor tiled_losses(Trace& /*trace*/, const LanguageModelHead& head, Tensor targets,
                    Tensor factors) {
  return linear_cross_entropy(head.hidden, cast(head.weight, head.hidden.dtype()), targets,
                              {.weights = factors});
}

Tensor autoscaled(Tensor weight, Tensor first, Tensor all) {
  const Tensor ratio = stop_gradient(first) / maximum(stop_gradient(all), kLeastNorm);
  return weight * clamp(ratio, 1, kMostAutoscale);
}

Tensor distillation(Tensor teacher, Tensor student, Tensor factors, double temperature) {
  const Fp32Scope island(student.builder());
  const Tensor expected = log_softmax(full_precision(stop_gradient(teacher)) * (1 / temperature));
  const Tensor found = log_softmax(full_precision(student) * (1 / temperature));
  const Tensor divergence = reduce_sum(exp(expected) * (expected - found), {2});
  return factored_sum(divergence * (temperature * temperature), factors);
}

Tensor state_distillation(Tensor teacher, Tensor student, Tensor factors) {
  const Fp32Scope island(student.builder());
  return factored_sum(
      mean_squared_difference(full_precision(student), full_precision(stop_gradient(teacher))),
      factors);
}

Tensor vector_distance(Tensor a, Tensor b, Tensor factors, Distance distance) {
  const Fp32Scope island(a.builder());
  const Tensor x = full_precision(a), y = full_precision(b);
  const int64_t last = x.rank() - 1;
  Tensor sum;
  if (distance != Distance::squared) {
    const auto norm = [&](Tensor v) {
      return sqrt(maximum(reduce_sum(v * v, {last}), kLeastNorm));
    };
    sum = 1.0 - reduce_sum(x * y, {last}) / (norm(x) * norm(y));
  }
  if (distance != Distance::cosine) {
    const Tensor squares = mean_squared_difference(x, y);
    sum = sum.valid() ? sum + squares : squares;
  }
  return factored_sum(sum, factors);
}

Tensor negative_entropy(Tensor logits) {
  const Fp32Scope island(logits.builder());
  const Tensor log_p = log_softmax(full_precision(logits));
  return reduce_mean(reduce_sum(exp(log_p) * log_p, {1}), {0});
}

Tensor statistics_distance(Tensor prefix, Tensor mean, Tensor deviation) {
  const Fp32Scope island(prefix.builder());
  const Tensor x = full_precision(prefix);
  const Tensor centre = reduce_mean(x, {0, 1});
  const Tensor centred = x - centre;
  const Tensor spread = sqrt(maximum(reduce_mean(centred * centred, {0, 1}), kLeastNorm));
  const Tensor moved = centre - cast(mean, x.dtype());
  const Tensor wider = spread - cast(deviation, x.dtype());
  return reduce_mean(moved * moved + wider * wider, {0});
}

Tensor squared_distance(Tensor x, Tensor target) {
  const Fp32Scope island(x.builder());
  const Tensor difference = full_precision(x) - cast(target, full_precision(x).dtype());
  const Tensor square = difference * difference;
  return square.rank() == 0 ? square : reduce_mean(square, {0});
}

}  // namespace fullbore::latentwire

#include "fullbore/train/generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     PhiloxStream& draws) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](int32_t id) { return double{logits[static_cast<size_t>(id)]}; };
  // Comparisons with NaN are no order: refuse it before anything is sorted.
  for (const float value : logits)
    if (std::isnan(value)) throw NumericalError("the model's logits are not a number");
  size_t kept = order.size();
  if (options.temperature == 0)
    kept = 1;
  else if (options.top_k > 0)
    kept = std::min(kept, static_cast<size_t>(options.top_k));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
      [&](int32_t a, int32_t b) { return logit(a) > logit(b) || (logit(a) == logit(b) && a < b); });
  const double largest = logit(order.front());
  if (!std::isfinite(largest)) throw NumericalError("the model's logits are not finite");
  if (kept == 1) return order.front();

  std::vector<double> weights(kept);
  for (size_t i = 0; i < kept; ++i)
    weights[i] = std::exp((logit(order[i]) - largest) / options.temperature);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = draws.uniform() * total;
  for (size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.front();  // rounding: the draw was within an ulp of the total
}

Graph Generator::trace(const LogitsFunction& logits, int64_t context) {
  Trace trace("generate", false);
  const Tensor tokens = trace.batch("tokens", {DType::i32, {1, context}});
  trace.result("logits", cast(logits(trace, tokens), DType::f32));
  return trace.finish();
}

Generator::Generator(const LogitsFunction& logits, int64_t context, State& state, Team& team,
                     const CompileOptions& options)
    : program_(Program::compile(trace(logits, context), state, team, options)),
      output_(program_.output("logits")),
      context_(context),
      window_(static_cast<size_t>((context + 15) / 16)) {
  const Graph& graph = program_.plan().graph;
  const TensorType& type = graph.type(graph.outputs()[static_cast<size_t>(output_)].value);
  FB_CHECK(type.shape.rank() == 3, "logits {}", type.text());
  vocabulary_ = type.shape[2];
}

std::span<const float> Generator::next_logits(std::span<const int32_t> tokens) {
  FB_CHECK(!tokens.empty(), "nothing to continue");
  const size_t used = std::min(tokens.size(), static_cast<size_t>(context_));
  auto* window = reinterpret_cast<int32_t*>(window_.data());
  std::copy(tokens.end() - static_cast<std::ptrdiff_t>(used), tokens.end(), window);
  std::fill(window + used, window + context_, 0);
  const void* const batch[] = {window};
  program_.run(batch);
  const auto* all = static_cast<const float*>(program_.result(output_));
  return {all + (used - 1) * static_cast<size_t>(vocabulary_), static_cast<size_t>(vocabulary_)};
}

void Generator::generate(std::vector<int32_t> prompt, int64_t count, const SamplingOptions& options,
                         uint64_t seed, const std::function<void(int32_t)>& emit) {
  PhiloxStream draws(seed);
  std::vector<int32_t>& tokens = prompt;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(sample_token(next_logits(tokens), options, draws));
    emit(tokens.back());
  }
}

}  // namespace fullbore

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "tests/support/random_choices.h"

namespace fullbore {
namespace {

// Values inside bodies are not looked at: a tanh after each choice keeps them small.
Tensor damped(Tensor x) { return is_floating(x.dtype()) ? tanh(x) : x; }

Tensor mean_of(Tensor x) {
  if (x.rank() == 0) return x;
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return reduce_mean(x, axes);
}

// A sum of products of few rows, which nothing else in the body reads.
bool is_wide(Tensor x) { return x.rank() == 2 && x.dim(0) >= kWide; }

void fill_body(Workbench& inner) {
  static const std::vector<Choice> choices = {call_by_sample, call_elementwise, call_elementwise,
                                              move_elements,  reduce_elements,  multiply_matrices,
                                              add_constant,   repeat_node};
  for (int64_t i = 0; i < 1 + inner.below(4); ++i) {
    std::vector<Tensor> results =
        inner.depth < 2 && inner.chance(0.1) ? run_loop(inner) : inner.one_of(choices)(inner);
    for (Tensor x : results)
      if (x.type().elements() <= inner.options.most_elements) inner.values.push_back(damped(x));
  }
}

// tanh(h W) or tanh(h W^T), with a W from outside of the loop: a matrix that every iteration reads.
Tensor recurred(Workbench& inner, Tensor h) {
  const Tensor weight = inner.normal_input({h.dim(1), h.dim(1)});
  const bool transposed = inner.chance(0.7);
  return tanh(matmul(h, inner.builder.import(weight), {.transpose_b = transposed}));
}

// `recurrent`: the carried value that is multiplied by a matrix in each iteration; none, if there are not so many.
IterationResults random_step(Workbench& outer, const LoopBody& body, size_t carried,
                             size_t recurrent, bool until) {
  Workbench inner{body.index.builder(), outer.draws, outer.options,
                  outer.new_input,      {},          outer.depth + 1};
  inner.values = outer.values;  // to be captured
  inner.values.push_back(body.index);
  inner.values.insert(inner.values.end(), body.slices.begin(), body.slices.end());
  std::copy_if(body.carried.begin(), body.carried.end(), std::back_inserter(inner.values),
               [](Tensor x) { return !is_wide(x); });
  fill_body(inner);
  IterationResults results;
  for (size_t i = 0; i < carried; ++i) {
    const Tensor before = body.carried[i];
    const auto made = inner.pick(
        [&](Tensor x) { return x.dtype() == before.dtype() && x.type().elements() > 0; });
    // At times a carried value does not change, and at times it is only counted up. Some are sums of
    // products, as the gradients of weights are.
    Tensor next = before;
    const bool may_be_sum =
        before.dtype() == inner.options.dtype && before.rank() == 2 && before.type().elements() > 0;
    if (i == recurrent)
      next = recurred(inner, before);
    else if (may_be_sum && inner.chance(is_wide(before) ? 0.9 : 0.5))
      next = sum_of_products(inner, before);
    else if (is_floating(before.dtype()) && made && !inner.chance(0.1))
      next = damped(adapt(inner.builder.import(*made), before.shape()));
    else if (!is_floating(before.dtype()) && before.dtype() != DType::boolean)
      next = before + 1.0;
    results.carried.push_back(next);
  }
  for (int64_t i = 0; i < inner.below(3); ++i)
    if (const auto row = inner.pick([](Tensor) { return true; }))
      results.stacked.push_back(inner.builder.import(*row));
  if (until) {
    const auto decides =
        inner.pick([](Tensor x) { return is_floating(x.dtype()) && x.type().elements() > 0; });
    const bool by_value = decides && inner.chance(0.5);
    results.stop = by_value ? less(mean_of(inner.builder.import(*decides)), inner.draws.normal())
                            : equal(body.index, static_cast<double>(inner.below(4)));
  }
  return results;
}

}  // namespace

std::vector<Tensor> run_loop(Workbench& bench) {
  if (!bench.options.loops) return {};
  LoopOptions options{
      .iterations = bench.below(5), .reverse = bench.chance(0.4), .parallel = bench.chance(0.25)};
  const bool in_order = !options.parallel;  // carries, or does not know when it ends
  if (in_order && bench.chance(0.3)) options.segments = 2 + bench.below(3);
  if (in_order && bench.chance(0.3)) {
    Literal count({DType::i64, {}});
    count.integers()[0] = bench.below(7) - 1;
    options.count = bench.new_input(std::move(count));
  }
  std::vector<Tensor> carried, sliced;
  for (int64_t i = 0; in_order && i < 1 + bench.below(3); ++i)
    if (const auto value = bench.pick([](Tensor x) { return x.dtype() != DType::boolean; }))
      carried.push_back(bench.builder.import(*value));
  size_t recurrent = SIZE_MAX;
  if (in_order && bench.chance(0.3)) {
    recurrent = carried.size();
    options.iterations = std::max<int64_t>(options.iterations, 3);
    carried.push_back(adapt(bench.pick_floating(), {4 + bench.below(20), 2 + bench.below(6)}));
  }
  for (int64_t i = 0; i < bench.below(3); ++i) {
    const Tensor rows = bench.pick_floating();
    if (rows.type().elements() == 0) continue;
    sliced.push_back(
        bench.builder.import(adapt(rows, bench.shape(2).inserted(0, options.iterations))));
  }
  if (in_order &&
      bench.chance(
          0.3)) {  // as it is for the gradient of a matrix that few rows of each iteration meet
    const int64_t width = kWide + bench.below(4);
    carried.push_back(adapt(bench.pick_floating(), {width, 1 + bench.below(4)}));
    sliced.push_back(adapt(bench.pick_floating(), {options.iterations, 1, width}));
  }
  if (std::any_of(sliced.begin(), sliced.end(),
                  [&](Tensor x) { return x.type().elements() > bench.options.most_elements; }))
    return {};
  const bool until = in_order && bench.chance(0.3);
  const LoopResult result =
      loop(bench.builder, carried, sliced, options, [&](const LoopBody& body) {
        IterationResults step = random_step(bench, body, carried.size(), recurrent, until);
        if (options.parallel && step.stacked.empty()) step.stacked.push_back(body.index);
        return step;
      });
  std::vector<Tensor> results = result.carried;
  results.insert(results.end(), result.stacked.begin(), result.stacked.end());
  if (until) results.push_back(result.executed);
  return results;
}

}  // namespace fullbore

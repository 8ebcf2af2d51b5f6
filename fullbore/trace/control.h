#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fullbore/trace/tensor_struct.h"
#include "fullbore/trace/trace.h"

/// Loops and branches over structs of tensors (tensor_struct.h), in place of numbered values. Each is one `loop` of
/// ops.h, or two: memory is planned for the longest course, and what a step does not need is not computed. Gradients go
/// through all of them. A body may use whatever tensors there are outside of it.
///
///     struct Halting { Tensor hidden, left; };
///     const auto thought = while_loop(Halting{x, ones}, {.at_most = 8}, [&](const Halting& now) {
///       const Tensor hidden = tanh(nn::linear(trace, "think", now.hidden, 64));
///       const Tensor left = now.left * sigmoid(nn::linear(trace, "halt", hidden, 1));
///       return Iteration{Halting{hidden, left}, less(reduce_max(left, {0, 1}), 0.01)};
///     });
///     use(thought.state.hidden, thought.iterations);
namespace fullbore {

struct WhileOptions {
  int64_t at_most = 0;  ///< iterations
  /// i64 []: makes so many, `at_most` at most; none: all of them, until the body says stop.
  Tensor count = {};
  int64_t segments = 0;    ///< of the gradient's memory: LoopOptions::segments
  Trace* trace = nullptr;  ///< random draws of the body are then other ones on each iteration
};

/// What a body makes of a state. With `stop`, bool [], true, it was the last iteration.
template <class S>
struct Iteration {
  S state;
  Tensor stop = {};
};

template <class S>
struct WhileResult {
  S state;
  Tensor iterations;  ///< i64 []: how many were made
};

struct ScanOptions {
  bool reverse = false;    ///< from the last row to the first
  int64_t segments = 0;    ///< LoopOptions::segments
  Trace* trace = nullptr;  ///< WhileOptions::trace
};

/// What a body makes of a state and a row.
template <class S, class Y>
struct Scanned {
  S state;
  Y output;
};

namespace control {

using Values = std::vector<Tensor>;
struct Made {
  Values state;
  Values outputs = {};
  Tensor stop = {};
};
using Body = std::function<Made(const Values& state, const Values& rows, Tensor index)>;

LoopResult run_while(const Values& state, const WhileOptions& options, const Body& body,
                     SourceLoc loc);
LoopResult run_scan(const Values& state, const Values& rows, const ScanOptions& options,
                    const Body& body, SourceLoc loc);
/// What `branch` makes where `taken`, bool [], and zeros elsewhere; it is not computed then.
Values run_branch(Tensor taken, const std::function<Values()>& branch, SourceLoc loc);
Values choose(Tensor condition, const Values& a, const Values& b, SourceLoc loc);
/// i64 []: how many iterations a loop has made.
Tensor iterations_made(const LoopResult& loop, const Values& state, const WhileOptions& options,
                       SourceLoc loc);

template <class T>
inline constexpr bool kIsIteration = false;
template <class S>
inline constexpr bool kIsIteration<Iteration<S>> = true;

}  // namespace control

/// Runs body(state) or body(state, index) at most `at_most` times, each on what the one before has left: it returns the
/// next state, or an Iteration{state, stop}. At least one iteration is made where at_most and count allow it. Shapes and
/// dtypes of a state stay as they are. UsageError.
template <class S, class Body>
WhileResult<S> while_loop(const S& state, const WhileOptions& options, const Body& body,
                          SourceLoc loc = SourceLoc::here()) {
  const control::Values first = tensors_of(state);
  const auto write = [&](const control::Values& values, const control::Values&, Tensor index) {
    const auto made = [&] {
      const S now = with_tensors(state, values);
      if constexpr (std::invocable<const Body&, const S&, Tensor>)
        return body(now, index);
      else
        return body(now);
    }();
    if constexpr (control::kIsIteration<std::remove_const_t<decltype(made)>>)
      return control::Made{tensors_of(made.state), {}, made.stop};
    else
      return control::Made{tensors_of(made)};
  };
  const LoopResult result = control::run_while(first, options, write, loc);
  return {with_tensors(state, result.carried),
          control::iterations_made(result, first, options, loc)};
}

/// Runs body(state, row) for each row of `rows`, a struct of tensors whose first axes are of one extent: row has each
/// of them without that axis. Returns the last state, and the outputs of all rows, one after another along a new first
/// axis. UsageError.
template <class S, class X, class Body>
auto scan(const S& state, const X& rows, const ScanOptions& options, const Body& body,
          SourceLoc loc = SourceLoc::here()) {
  using Made = std::invoke_result_t<const Body&, const S&, const X&>;
  using Y = decltype(Made::output);
  std::optional<Y> pattern;
  const auto write = [&](const control::Values& values, const control::Values& row, Tensor) {
    const Made made = body(with_tensors(state, values), with_tensors(rows, row));
    pattern.emplace(made.output);
    return control::Made{tensors_of(made.state), tensors_of(made.output)};
  };
  const LoopResult result =
      control::run_scan(tensors_of(state), tensors_of(rows), options, write, loc);
  return Scanned<S, Y>{with_tensors(state, result.carried),
                       with_tensors(std::move(*pattern), result.stacked)};
}

/// then() where `condition`, bool [], and otherwise() elsewhere: structs of one type, with the same shapes and dtypes.
/// The branch that is not taken is not computed. UsageError. For a choice element by element: select().
template <class Then, class Otherwise>
auto cond(Tensor condition, const Then& then, const Otherwise& otherwise,
          SourceLoc loc = SourceLoc::here()) {
  using S = std::invoke_result_t<const Then&>;
  static_assert(std::is_same_v<S, std::invoke_result_t<const Otherwise&>>,
                "both branches of cond() return the same struct");
  std::optional<S> pattern;
  const control::Values yes = control::run_branch(
      condition,
      [&] {
        pattern.emplace(then());
        return tensors_of(*pattern);
      },
      loc);
  const control::Values no = control::run_branch(
      logical_not(condition, loc), [&] { return tensors_of(otherwise()); }, loc);
  return with_tensors(std::move(*pattern), control::choose(condition, yes, no, loc));
}

}  // namespace fullbore

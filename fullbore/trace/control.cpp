#include "fullbore/trace/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore::control {
namespace {

const TensorType kCount{DType::i64, {}};
const TensorType kFlag{DType::boolean, {}};

void require_scalar(const char* op, const char* what, Tensor x, const TensorType& type,
                    SourceLoc loc) {
  require_tensor(op, what, x, loc);
  if (x.type() != type)
    throw UsageError(fmt::format("{}: {} is {}, not {}", op, what, x.type().text(), type.text()),
                     loc);
}

// The same tensors, in number and type, for their places are their names here.
void require_same(const char* op, const char* what, const Values& found, const Values& wanted,
                  SourceLoc loc) {
  if (found.size() != wanted.size())
    throw UsageError(fmt::format("{}: {} has {} tensors, {} were expected", op, what, found.size(),
                                 wanted.size()),
                     loc);
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].type(loc) != wanted[i].type(loc))
      throw UsageError(fmt::format("{}: tensor {} of {} is {}, not {}", op, i, what,
                                   found[i].type(loc).text(), wanted[i].type(loc).text()),
                       loc);
}

GraphBuilder& builder_of(const char* op, Values operands, Tensor other, SourceLoc loc) {
  if (other.valid()) operands.push_back(other);
  if (operands.empty()) throw UsageError(fmt::format("{}: there is no tensor in it", op), loc);
  return innermost_builder(op, operands, loc);
}

// One iteration, whose draws are of its own where `trace` is known.
IterationResults write_iteration(const char* op, const LoopBody& body, const Body& write,
                                 Trace* trace, int64_t iterations, SourceLoc loc) {
  std::optional<IterationScope> draws;
  if (trace != nullptr) draws.emplace(*trace, body.index, iterations);
  const Made made = write(body.carried, body.slices, body.index);
  require_same(op, "what the body returns as the next state", made.state, body.carried, loc);
  if (made.stop.valid()) require_scalar(op, "stop", made.stop, kFlag, loc);
  return {made.state, made.outputs, made.stop};
}

}  // namespace

LoopResult run_while(const Values& state, const WhileOptions& options, const Body& body,
                     SourceLoc loc) {
  if (options.at_most < 1)
    throw UsageError(fmt::format("while_loop: at_most is {}; say how many iterations there can be",
                                 options.at_most),
                     loc);
  if (options.count.valid()) require_scalar("while_loop", "count", options.count, kCount, loc);
  if (state.empty()) throw UsageError("while_loop: there is no tensor in the state", loc);
  return loop(
      builder_of("while_loop", state, options.count, loc), state, {},
      {.iterations = options.at_most, .count = options.count, .segments = options.segments},
      [&](const LoopBody& each) {
        return write_iteration("while_loop", each, body, options.trace, options.at_most, loc);
      },
      loc);
}

LoopResult run_scan(const Values& state, const Values& rows, const ScanOptions& options,
                    const Body& body, SourceLoc loc) {
  if (rows.empty()) throw UsageError("scan: there is no tensor in the rows", loc);
  for (const Tensor& each : rows) {
    if (each.rank(loc) == 0) throw UsageError("scan: rows are of tensors with a first axis", loc);
    if (each.dim(0) != rows[0].dim(0))
      throw UsageError(fmt::format("scan: rows of {} and of {} are not as many",
                                   rows[0].type().text(), each.type().text()),
                       loc);
  }
  Values operands = state;
  operands.insert(operands.end(), rows.begin(), rows.end());
  const int64_t iterations = rows[0].dim(0);
  return loop(
      builder_of("scan", operands, {}, loc), state, rows,
      {.iterations = iterations, .reverse = options.reverse, .segments = options.segments},
      [&](const LoopBody& each) {
        return write_iteration("scan", each, body, options.trace, iterations, loc);
      },
      loc);
}

Values run_branch(Tensor taken, const std::function<Values()>& branch, SourceLoc loc) {
  require_scalar("cond", "the condition", taken, kFlag, loc);
  // A row of an iteration that is not made is zero.
  LoopResult made = loop(
      builder_of("cond", {}, taken, loc), {}, {},
      {.iterations = 1, .count = cast(taken, DType::i64, loc)},
      [&](const LoopBody&) { return IterationResults{.carried = {}, .stacked = branch()}; }, loc);
  for (Tensor& each : made.stacked) each = reshape(each, each.shape().without(0), loc);
  return std::move(made.stacked);
}

Values choose(Tensor condition, const Values& a, const Values& b, SourceLoc loc) {
  require_same("cond", "what the second branch returns", b, a, loc);
  Values chosen;
  for (size_t i = 0; i < a.size(); ++i)
    chosen.push_back(select(condition, Operand(a[i], loc), Operand(b[i], loc)));
  return chosen;
}

Tensor iterations_made(const LoopResult& loop, const Values& state, const WhileOptions& options,
                       SourceLoc loc) {
  if (loop.executed.valid()) return loop.executed;
  const auto most = static_cast<double>(options.at_most);
  if (options.count.valid())
    return minimum(Operand(maximum(Operand(options.count, loc), 0.0), loc), most);
  return full(builder_of("while_loop", state, {}, loc), kCount, most, loc);
}

}  // namespace fullbore::control

#include "fullbore/ir/loop.h"

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/ops/loop_samples.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/written_body.h"

namespace fullbore {
namespace {

const TensorType kIndex{DType::i64, {}};
const TensorType kFlag{DType::boolean, {}};

int64_t require_count(const OpCall& call, std::string_view name) {
  const int64_t count = require_attribute<int64_t>(call, name);
  if (count < 0) call.fail(fmt::format("{} cannot be {}", name, count));
  return count;
}

const TensorType& body_input(const OpCall& call, int index) {
  return call.body->type(call.body->inputs()[static_cast<size_t>(index)].value);
}
const TensorType& body_output(const OpCall& call, int index) {
  return call.body->type(call.body->outputs()[static_cast<size_t>(index)].value);
}
const TensorType& operand(const OpCall& call, int index) {
  return call.inputs[static_cast<size_t>(index)];
}

// The counts of LoopShape, none of which may be negative.
LoopShape require_shape(const OpCall& call) {
  const int64_t carried = require_count(call, "carried");
  const int64_t sliced = require_count(call, "sliced");
  require_count(call, "iterations");
  for (const std::string_view name : {"reverse", "until", "counted"})
    require_attribute<bool>(call, name);
  if (!call.body) call.fail("needs a body");
  const auto operands = static_cast<int64_t>(call.inputs.size());
  if (carried + sliced > operands ||
      LoopShape(call.attributes, static_cast<int>(operands), *call.body).captured < 0)
    call.fail(fmt::format("{} operands for {} carried and {} sliced", operands, carried, sliced));
  const LoopShape shape(call.attributes, static_cast<int>(operands), *call.body);
  const size_t inputs = call.body->inputs().size();
  const int wanted = 1 + shape.carried + shape.sliced + shape.captured;
  if (static_cast<int>(inputs) != wanted)
    call.fail(fmt::format("the body has {} inputs, its operands make {}", inputs, wanted));
  if (shape.stacked < 0)
    call.fail(fmt::format("the body has {} outputs, too few for {} carried{}",
                          call.body->outputs().size(), shape.carried,
                          shape.until ? " and a stop" : ""));
  if (shape.segments < 1) call.fail(fmt::format("segments cannot be {}", shape.segments));
  if (shape.parallel && (shape.carried > 0 || shape.until || shape.counted))
    call.fail(
        "iterations side by side carry nothing from one to the next, and how many there are is "
        "known");
  return shape;
}

void require_operands(const OpCall& call, const LoopShape& shape) {
  if (shape.counted && operand(call, 0) != kIndex)
    call.fail(fmt::format("needs count i64[], got {}", operand(call, 0).text()));
  if (body_input(call, 0) != kIndex)
    call.fail(fmt::format("the body takes its index as {}, not i64[]", body_input(call, 0).text()));
  for (int i = 0; i < shape.carried; ++i) {
    const TensorType& enters = operand(call, shape.first_carried() + i);
    if (body_input(call, 1 + i) != enters)
      call.fail(fmt::format("carried {} is {}, the body takes {}", i, enters.text(),
                            body_input(call, 1 + i).text()));
    if (body_output(call, i) != enters)
      call.fail(fmt::format("carried {} enters the body as {} and leaves it as {}", i,
                            enters.text(), body_output(call, i).text()));
  }
  for (int i = 0; i < shape.sliced; ++i) {
    const TensorType& rows = operand(call, shape.first_sliced() + i);
    if (rows.shape.rank() == 0 || rows.shape[0] != shape.iterations)
      call.fail(fmt::format("sliced {} is {}, which has no row for each of {} iterations", i,
                            rows.text(), shape.iterations));
    const TensorType row{rows.dtype, rows.shape.without(0)};
    if (body_input(call, 1 + shape.carried + i) != row)
      call.fail(fmt::format("a row of sliced {} is {}, the body takes {}", i, row.text(),
                            body_input(call, 1 + shape.carried + i).text()));
  }
  for (int i = 0; i < shape.captured; ++i) {
    const TensorType& constant = operand(call, shape.first_captured() + i);
    const TensorType& taken = body_input(call, 1 + shape.carried + shape.sliced + i);
    if (taken != constant)
      call.fail(
          fmt::format("captured {} is {}, the body takes {}", i, constant.text(), taken.text()));
  }
}

std::vector<TensorType> infer(const OpCall& call) {
  const LoopShape shape = require_shape(call);
  require_operands(call, shape);
  if (shape.until && body_output(call, shape.carried + shape.stacked) != kFlag)
    call.fail(fmt::format("needs stop bool[], got {}",
                          body_output(call, shape.carried + shape.stacked).text()));
  std::vector<TensorType> types;
  for (int i = 0; i < shape.carried; ++i) types.push_back(body_output(call, i));
  for (int i = 0; i < shape.stacked; ++i) {
    const TensorType& row = body_output(call, shape.carried + i);
    types.push_back({row.dtype, row.shape.inserted(0, shape.iterations)});
    require_elements(call, types.back().shape);
  }
  if (shape.until) types.push_back(kIndex);
  if (types.empty()) call.fail("the body has no outputs: nothing would come of the loop");
  return types;
}

// No vjp: the gradient of a loop is another loop, whose body is the gradient of this one's body.
// Only autodiff can take the gradient of a graph (autodiff/loop_gradient.h). No reference either:
// the interpreter runs the body, by the definition in ir/loop.h.
const OpRegistrar loop_op(OpDef{
    .name = "loop",
    .summary =
        "runs its body for each iteration, with carried, sliced, captured and stacked values",
    .tags = Tag::region,
    .infer = infer,
    .samples = loop_samples,
    .error_samples = loop_error_samples,
});

void require_tensors(const std::vector<Tensor>& tensors, std::string_view name, SourceLoc loc) {
  for (size_t i = 0; i < tensors.size(); ++i)
    require_tensor("loop", fmt::format("{} {}", name, i), tensors[i], loc);
}

// A body and the builder that made it, which lives as long: a tensor of the body that a model uses
// after the loop finds its builder without a graph, and is refused (require_tensor).
struct Body {
  explicit Body(GraphBuilder* outer) : builder("body", outer) {}
  GraphBuilder builder;
  Graph graph;
};

void require_rows(const std::vector<Tensor>& sliced, const LoopOptions& options, SourceLoc loc) {
  for (size_t i = 0; i < sliced.size(); ++i) {
    const TensorType& rows = sliced[i].type();
    if (rows.shape.rank() == 0 || rows.shape[0] != options.iterations)
      throw UsageError(
          fmt::format("loop: sliced {} is {}, which has no row for each of {} iterations", i,
                      rows.text(), options.iterations),
          loc);
  }
}

// The body's inputs as ir/loop.h orders them; captures come after all of these by themselves.
LoopBody open_body(GraphBuilder& inner, const std::vector<Tensor>& carried,
                   const std::vector<Tensor>& sliced) {
  LoopBody body;
  body.index = inner.input("index", Role::local, kIndex);
  for (size_t i = 0; i < carried.size(); ++i)
    body.carried.push_back(
        inner.input(fmt::format("carried{}", i), Role::local, carried[i].type()));
  for (size_t i = 0; i < sliced.size(); ++i) {
    const TensorType& rows = sliced[i].type();
    body.slices.push_back(
        inner.input(fmt::format("slice{}", i), Role::local, {rows.dtype, rows.shape.without(0)}));
  }
  return body;
}

void close_body(GraphBuilder& inner, const IterationResults& iteration, size_t carried,
                SourceLoc loc) {
  if (iteration.carried.size() != carried)
    throw UsageError(fmt::format("loop: {} values enter the body as carried and {} leave it",
                                 carried, iteration.carried.size()),
                     loc);
  require_tensors(iteration.carried, "the body's carried", loc);
  require_tensors(iteration.stacked, "the body's stacked", loc);
  for (size_t i = 0; i < carried; ++i)
    inner.output(fmt::format("carried{}", i), iteration.carried[i]);
  for (size_t i = 0; i < iteration.stacked.size(); ++i)
    inner.output(fmt::format("stacked{}", i), iteration.stacked[i]);
  if (iteration.stop.valid()) inner.output("stop", iteration.stop);
}

using WriteIteration = std::function<IterationResults(const LoopBody&)>;

LoopResult plain_loop(GraphBuilder& builder, std::vector<Tensor> carried,
                      const std::vector<Tensor>& sliced, const LoopOptions& options,
                      const WriteIteration& body, SourceLoc loc) {
  const auto made = std::make_shared<Body>(&builder);
  GraphBuilder& inner = made->builder;
  const LoopBody opened = open_body(inner, carried, sliced);
  const IterationResults iteration = [&] {
    const WrittenBody written(inner);
    return body(opened);
  }();
  const size_t carried_count = carried.size();
  close_body(inner, iteration, carried_count, loc);
  made->graph = inner.take();

  std::vector<Tensor> operands = std::move(carried);
  if (options.count.valid()) operands.insert(operands.begin(), options.count);
  operands.insert(operands.end(), sliced.begin(), sliced.end());
  for (const GraphBuilder::Capture& capture : inner.captures()) operands.push_back(capture.outer);
  const bool until = iteration.stop.valid();
  Attributes attributes{{"carried", static_cast<int64_t>(carried_count)},
                        {"sliced", static_cast<int64_t>(sliced.size())},
                        {"iterations", options.iterations},
                        {"reverse", options.reverse},
                        {"until", until},
                        {"counted", options.count.valid()}};
  if (options.parallel) attributes.set("parallel", true);
  if (options.segments > 1) attributes.set("segments", options.segments);
  const std::vector<Tensor> results = builder.emit(
      get_op("loop"), operands, attributes, loc, std::shared_ptr<const Graph>(made, &made->graph));

  LoopResult result;
  const auto after_carried = results.begin() + static_cast<std::ptrdiff_t>(carried_count);
  result.carried.assign(results.begin(), after_carried);
  result.stacked.assign(after_carried, results.end() - (until ? 1 : 0));
  if (until) result.executed = results.back();
  return result;
}

// A loop of segments around a loop of a segment's iterations, of which the last segment may have fewer. Where an
// iteration stops, its segment is the last one.
LoopResult segmented_loop(GraphBuilder& builder, std::vector<Tensor> carried,
                          std::vector<Tensor> sliced, const LoopOptions& options,
                          const WriteIteration& body, SourceLoc loc) {
  const int64_t all = options.iterations;
  const auto divided = [&](int64_t by) { return (all + by - 1) / by; };
  const int64_t length = divided(std::min(options.segments, all));
  const int64_t segments = divided(length);
  for (Tensor& rows : sliced) {
    if (segments * length > all) rows = pad(rows, 0, 0, segments * length - all, 0, loc);
    rows = reshape(rows, rows.shape().with(0, length).inserted(0, segments), loc);
  }
  Tensor count = options.count;
  if (count.valid()) count = minimum(count, static_cast<double>(all));
  const bool whole = !count.valid() && segments * length == all;
  if (!whole && !count.valid()) count = full(builder, kIndex, static_cast<double>(all), loc);

  bool until = false;
  const auto write_segment = [&](const LoopBody& segment) {
    const Tensor first = segment.index * static_cast<double>(length);
    LoopOptions inside{.iterations = length, .reverse = options.reverse};
    if (!whole) inside.count = maximum(count - first, 0.0);
    const LoopResult made = plain_loop(
        segment.index.builder(), segment.carried, segment.slices, inside,
        [&](const LoopBody& within) {
          LoopBody iteration = within;
          iteration.index = within.index + first;
          IterationResults results = body(iteration);
          until = results.stop.valid();
          if (until) results.stacked.push_back(results.stop);
          return results;
        },
        loc);
    IterationResults results{.carried = made.carried, .stacked = made.stacked};
    if (until) {
      const Tensor stops = cast(results.stacked.back(), DType::i64);
      results.stop = greater(reduce_sum(stops, {0}), 0.0);
      results.stacked.back() = made.executed;
    }
    return results;
  };
  LoopResult result =
      plain_loop(builder, std::move(carried), sliced,
                 {.iterations = segments, .reverse = options.reverse, .segments = segments},
                 write_segment, loc);
  if (until) {
    result.executed = reduce_sum(result.stacked.back(), {0});
    result.stacked.pop_back();
  }
  for (Tensor& rows : result.stacked) {
    rows = reshape(rows, rows.shape().without(0).with(0, segments * length), loc);
    if (segments * length > all) rows = slice(rows, 0, 0, all, 1, loc);
  }
  return result;
}

}  // namespace

LoopResult loop(GraphBuilder& builder, std::vector<Tensor> carried, std::vector<Tensor> sliced,
                LoopOptions options, const WriteIteration& body, SourceLoc loc) {
  require_tensors(carried, "carried", loc);
  require_tensors(sliced, "sliced", loc);
  if (options.iterations < 0)
    throw UsageError(fmt::format("loop: iterations cannot be {}", options.iterations), loc);
  if (options.segments < 0)
    throw UsageError(fmt::format("loop: segments cannot be {}", options.segments), loc);
  require_rows(sliced, options, loc);
  GraphBuilder& graph = graph_of_loop(builder);
  if (options.segments < 2 || options.iterations < 2) {
    options.segments = 0;
    return plain_loop(graph, std::move(carried), sliced, options, body, loc);
  }
  if (options.parallel)
    throw UsageError(
        "loop: iterations side by side carry nothing that a segment could begin with: parallel or "
        "segments, not both",
        loc);
  return segmented_loop(graph, std::move(carried), std::move(sliced), options, body, loc);
}

}  // namespace fullbore

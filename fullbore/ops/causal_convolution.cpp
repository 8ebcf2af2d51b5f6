#include <array>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/recurrent.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Operands x [B,T,C], weight [C,W], bias [C], history [B,W-1,C], [resets [B,T]].
constexpr size_t kHistory = 3;

void require(const OpCall& call, size_t index, std::string_view name, const Shape& shape,
             bool wide) {
  const DType dtype = call.inputs[0].dtype;
  const TensorType& type = call.inputs[index];
  OperandNames::note(name, type);
  if (type.shape == shape && (type.dtype == dtype || (wide && type.dtype == compute_dtype(dtype))))
    return;
  call.fail(fmt::format("needs {} {}, got {}", name, TensorType{dtype, shape}.text(), type.text()));
}

std::vector<TensorType> infer(const OpCall& call) {
  const bool resets = require_attribute<bool>(call, "resets");
  require_inputs(call, kHistory + (resets ? 2 : 1));
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_rank(call, 0, "x", 3);
  require_rank(call, 1, "weight", 2);
  const Shape& x = call.inputs[0].shape;
  const int64_t width = call.inputs[1].shape[1];
  if (width == 0) call.fail(operand_text("weight", call.inputs[1]) + " reads no token");
  require(call, 1, "weight", {x[2], width}, true);
  require(call, 2, "bias", {x[2]}, true);
  const Shape history{x[0], width - 1, x[2]};
  require(call, kHistory, "history", history, false);
  const TensorType flags{DType::boolean, {x[0], x[1]}};
  if (!resets) return {call.inputs[0], {call.inputs[0].dtype, history}};
  OperandNames::note("resets", call.inputs[kHistory + 1]);
  if (call.inputs[kHistory + 1] != flags)
    call.fail(
        fmt::format("needs resets {}, got {}", flags.text(), call.inputs[kHistory + 1].text()));
  return {call.inputs[0], {call.inputs[0].dtype, history}};
}

/// One call's tokens, those of the history first: [B,W-1+T,C].
class Taps {
 public:
  explicit Taps(std::span<const Tensor> inputs)
      : tokens_(inputs[0].dim(1)),
        width_(inputs[1].dim(1)),
        all_(concat(std::array{inputs[kHistory], inputs[0]}, 1)) {
    if (inputs.size() == kHistory + 1 || width_ == 1) return;
    // Number of resets up to each: what lies before a reset has another than what lies behind it.
    const Tensor counts = cumsum(cast(inputs[kHistory + 1], DType::i32), 1);
    segment_ = expand_dims(pad(counts, 1, width_ - 1, 0), 2);
  }

  int64_t width() const { return width_; }
  Tensor all() const { return all_; }
  /// x, of what the weight i reads for each token, or where a reset lies in between, 0.
  Tensor seen(int64_t i, Tensor x) const {
    return visible(i, tokens_, part(segment_, width_ - 1, tokens_), x);
  }
  Tensor read(int64_t i) const { return seen(i, part(all_, i, tokens_)); }
  /// The same of the history that is left.
  Tensor kept(Tensor x) const {
    return visible(tokens_, width_ - 1, part(segment_, width_ + tokens_ - 2, 1), x);
  }
  Tensor left() const { return kept(part(all_, tokens_, width_ - 1)); }
  /// What belongs to tokens [first, first + ...) of all of them, with zeros around.
  Tensor placed(Tensor x, int64_t first) const {
    return pad(x, 1, first, width_ - 1 + tokens_ - first - x.dim(1));
  }
  Tensor of_history(Tensor x) const { return part(x, 0, width_ - 1); }
  Tensor of_tokens(Tensor x) const { return part(x, width_ - 1, tokens_); }

 private:
  static Tensor part(Tensor x, int64_t first, int64_t count) {
    return x.valid() ? slice(x, 1, first, first + count) : x;
  }
  Tensor visible(int64_t first, int64_t count, Tensor from, Tensor x) const {
    return segment_.valid() ? select(equal(part(segment_, first, count), from), x, 0.0) : x;
  }

  int64_t tokens_, width_;
  Tensor all_;
  Tensor segment_;  ///< invalid without resets
};

// weight i of each channel, [C]
Tensor weight_of(Tensor weight, int64_t i) { return squeeze(slice(weight, 1, i, i + 1), 1); }

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Taps taps(call.inputs);
  const Tensor weight = widened(call.inputs[1]);
  Tensor y = widened(call.inputs[2]);
  for (int64_t i = 0; i < taps.width(); ++i) y = y + weight_of(weight, i) * widened(taps.read(i));
  return {as_dtype(y, call.inputs[0].dtype()), taps.left()};
}

// dy goes to where the tokens lie that it was made of. The decomposition's own gradient would do it the
// other way round, and keep the tokens once for every weight.
std::vector<Tensor> vjp(const VjpCall& call) {
  const auto& in = call.inputs;
  const Taps taps(in);
  const Tensor weight = widened(in[1]), all = widened(taps.all());
  const Tensor dy =
      widened(call.cotangents[0].valid() ? call.cotangents[0] : zeros_like(call.outputs[0]));
  Tensor of_all;
  if (call.cotangents[1].valid())
    of_all = taps.placed(widened(taps.kept(call.cotangents[1])), in[0].dim(1));
  std::vector<Tensor> of_weight;
  for (int64_t i = 0; i < taps.width(); ++i) {
    const Tensor seen = taps.seen(i, dy);
    const Tensor term = taps.placed(seen * weight_of(weight, i), i);
    of_all = of_all.valid() ? of_all + term : term;
    of_weight.push_back(expand_dims(reduce_sum(taps.placed(seen, i) * all, {0, 1}), 1));
  }
  std::vector<Tensor> cotangents(in.size());
  cotangents[0] = as_dtype(taps.of_tokens(of_all), in[0].dtype());
  cotangents[1] =
      as_dtype(of_weight.size() == 1 ? of_weight[0] : concat(of_weight, 1), in[1].dtype());
  cotangents[2] = as_dtype(reduce_sum(dy, {0, 1}), in[2].dtype());
  cotangents[kHistory] = as_dtype(taps.of_history(of_all), in[kHistory].dtype());
  return cotangents;
}

// The token `lag` before t, or a 0 where a reset lies in between; the history's before t = 0.
double earlier(const ReferenceCall& call, int64_t batch, int64_t t, int64_t lag, int64_t channel) {
  const Literal& x = *call.inputs[0];
  const Literal& history = *call.inputs[kHistory];
  const int64_t tokens = x.shape()[1], channels = x.shape()[2], kept = history.shape()[1];
  for (int64_t s = t; s > t - lag && s >= 0 && call.inputs.size() > kHistory + 1; --s)
    if (s < tokens &&
        call.inputs[kHistory + 1]->integers()[static_cast<size_t>(batch * tokens + s)] != 0)
      return 0;
  const int64_t at = t - lag;
  return at >= 0 ? x.at((batch * tokens + at) * channels + channel)
                 : history.at((batch * kept + kept + at) * channels + channel);
}

void reference(ReferenceCall& call) {
  const Shape& x = call.inputs[0]->shape();
  const int64_t width = call.inputs[1]->shape()[1];
  for_each_index(x, [&](const std::vector<int64_t>& index, int64_t flat) {
    double sum = call.inputs[2]->at(index[2]);
    for (int64_t i = 0; i < width; ++i)
      sum += call.inputs[1]->at(index[2] * width + i) *
             earlier(call, index[0], index[1], width - 1 - i, index[2]);
    call.outputs[0].put(flat, sum);
  });
  for_each_index(call.outputs[1].shape(), [&](const std::vector<int64_t>& index, int64_t flat) {
    const int64_t lag = width - 2 - index[1];
    call.outputs[1].put(flat, earlier(call, index[0], x[1] - 1, lag, index[2]));
  });
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  cost.flops = 2 * static_cast<double>(call.outputs[0].elements() * call.inputs[1].shape[1]);
  return cost;
}

struct Extents {
  int64_t batch = 2, tokens = 5, channels = 3, width = 4;
  bool resets = false;
};

Sample sample(std::string why, Extents e) {
  const auto normal = [](Shape shape) {
    return SampleInput::normal({DType::f32, std::move(shape)});
  };
  Sample made{.why = std::move(why),
              .inputs = {normal({e.batch, e.tokens, e.channels}), normal({e.channels, e.width}),
                         normal({e.channels}), normal({e.batch, e.width - 1, e.channels})},
              .attributes = {{"resets", e.resets}}};
  if (e.resets)
    made.inputs.push_back(SampleInput::integers({DType::boolean, {e.batch, e.tokens}}, 0, 1.2));
  return made;
}

std::vector<Sample> samples() {
  return {
      sample("more tokens than it reads", {}),
      sample("one token, as in decoding", {.tokens = 1}),
      sample("fewer tokens than it reads, resets", {.tokens = 2, .resets = true}),
      sample("resets", {.tokens = 11, .channels = 2, .resets = true}),
      sample("of the token itself alone", {.width = 1, .resets = true}),
      sample("of the token before and itself", {.tokens = 3, .channels = 17, .width = 2}),
      sample("no tokens", {.tokens = 0}),
      sample("no tokens, resets", {.tokens = 0, .resets = true}),
      sample("one element of everything", {1, 1, 1, 1}),
  };
}

std::vector<ErrorSample> error_samples() {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const TensorType x = f32({2, 5, 3}), weight = f32({3, 4}), bias = f32({3});
  const TensorType history = f32({2, 3, 3});
  return {
      {"no history", {x, weight, bias}, {{"resets", false}}, "needs 4 operands, got 3"},
      {"a history of as many tokens as it reads",
       {x, weight, bias, f32({2, 4, 3})},
       {{"resets", false}},
       "needs history f32[2,3,3], got f32[2,4,3]"},
      {"weights transposed",
       {x, f32({4, 3}), bias, history},
       {{"resets", false}},
       "needs weight f32[3,3], got f32[4,3]"},
      {"no weights", {x, f32({3, 0}), bias, history}, {{"resets", false}}, "reads no token"},
      {"resets of numbers",
       {x, weight, bias, history, f32({2, 5})},
       {{"resets", true}},
       "needs resets bool[2,5], got f32[2,5]"},
  };
}

const OpRegistrar causal_convolution_op(OpDef{
    .name = "causal_convolution",
    .summary =
        "each channel's own weights over the last few tokens, with those of the segment before",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = error_samples,
});

}  // namespace

ConvolutionResult causal_convolution(Tensor x, Tensor weight, Tensor bias,
                                     ConvolutionOptions options, SourceLoc loc) {
  constexpr const char* kOp = "causal_convolution";
  require_tensor(kOp, "x", x, loc);
  require_tensor(kOp, "weight", weight, loc);
  require_tensor(kOp, "bias", bias, loc);
  std::vector<Tensor> operands = {x, weight, bias};
  if (!options.history.valid() && x.rank() == 3 && weight.rank() == 2 && weight.dim(1) > 0)
    options.history = full(innermost_builder(kOp, operands, loc),
                           {x.dtype(), {x.dim(0), weight.dim(1) - 1, x.dim(2)}}, 0, loc);
  if (options.history.valid()) operands.push_back(options.history);
  if (options.resets.valid()) operands.push_back(options.resets);
  const std::vector<Tensor> made =
      apply_all(kOp, operands, {{"resets", options.resets.valid()}}, loc);
  return {made[0], made[1]};
}

}  // namespace fullbore

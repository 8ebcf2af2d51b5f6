#include "fullbore/nn/modules.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/nn/initializers.h"
#include "fullbore/ops/packed_attention.h"

namespace fullbore::nn {
namespace {

// Weights are f32 masters; the matmul runs in the activations' dtype.
Tensor as(Tensor parameter, DType dtype, SourceLoc loc) {
  return parameter.dtype() == dtype ? parameter : cast(parameter, dtype, loc);
}

void require_rank(const char* module, Tensor x, bool fits, const char* axes, SourceLoc loc) {
  if (!fits)
    throw UsageError(fmt::format("{}: needs x {}, got {}", module, axes, x.type().text()), loc);
}

}  // namespace

LinearOptions linear_of_pytorch(int64_t inputs, bool bias) {
  const Initializer first = kaiming_uniform(inputs);
  return {.bias = bias, .weight_initializer = first, .bias_initializer = first};
}

Tensor linear(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const LinearOptions& options, SourceLoc loc) {
  require_rank("linear", x, x.rank() >= 1, "[..., I]", loc);
  const Scope scope(trace, name);
  const Tensor weight =
      trace.parameter("weight", {outputs, x.dim(-1)}, options.weight_initializer, loc);
  const Tensor bias =
      options.bias
          ? as(trace.parameter("bias", {outputs}, options.bias_initializer, loc), x.dtype(), loc)
          : Tensor();
  const Tensor y = fullbore::linear(x, as(weight, x.dtype(), loc), bias, loc);
  const Tensor added = options.beside ? options.beside(name, x, outputs) : Tensor();
  return added.valid() ? y + added : y;
}

Tensor embedding_table(Trace& trace, const std::string& name, int64_t rows, int64_t width,
                       Initializer initializer, SourceLoc loc) {
  const Scope scope(trace, name);
  const SharedScope shared(trace);
  return trace.parameter("weight", {rows, width}, std::move(initializer), loc);
}

Tensor embedding(Trace& trace, const std::string& name, Tensor indices, int64_t rows, int64_t width,
                 Initializer initializer, SourceLoc loc) {
  const Scope scope(trace, name);
  const Tensor table = trace.parameter("weight", {rows, width}, std::move(initializer), loc);
  return gather(table, indices, loc);
}

Tensor layer_norm(Trace& trace, const std::string& name, Tensor x, LayerNormOptions options,
                  SourceLoc loc) {
  require_rank("layer_norm", x, x.rank() >= 1, "[..., C]", loc);
  const Scope scope(trace, name);
  const Tensor gain = trace.parameter("weight", {x.dim(-1)}, Initializer::ones(), loc);
  const Tensor bias =
      options.bias ? trace.parameter("bias", {x.dim(-1)}, Initializer::zeros(), loc) : Tensor();
  return fullbore::layer_norm(x, gain, bias, options.epsilon, loc);
}

Tensor dropout(Trace& trace, Tensor x, double probability, SourceLoc loc) {
  if (!trace.training() || probability == 0) return x;
  return fullbore::dropout(x, probability, trace.random(), loc);
}

namespace {

// [B,T] -> [B,1,T,1], of queries, and [B,1,1,T], of keys.
Tensor of_queries(Tensor x, SourceLoc loc) { return expand_dims(expand_dims(x, 1, loc), 3, loc); }
Tensor of_keys(Tensor x, SourceLoc loc) { return expand_dims(expand_dims(x, 1, loc), 1, loc); }

}  // namespace

Tensor same_segment(Tensor segments, SourceLoc loc) {
  require_rank("same_segment", segments, segments.rank() == 2, "[B,T]", loc);
  return equal(Operand(of_queries(segments, loc), loc), Operand(of_keys(segments, loc), loc));
}

Tensor same_branch(Tensor branches, SourceLoc loc) {
  require_rank("same_branch", branches, branches.rank() == 2, "[B,T]", loc);
  const Tensor keys = of_keys(branches, loc);
  return logical_or(equal(Operand(of_queries(branches, loc), loc), Operand(keys, loc)),
                    equal(Operand(keys, loc), Operand(0.0, loc)));
}

Tensor self_attention(Trace& trace, const std::string& name, Tensor x, SelfAttentionOptions options,
                      SourceLoc loc) {
  require_rank("self_attention", x, x.rank() == 3, "[B,T,C]", loc);
  const int64_t batch = x.dim(0);
  const int64_t length = x.dim(1);
  const int64_t width = x.dim(2);
  if (options.heads <= 0 || width % options.heads != 0)
    throw UsageError(
        fmt::format("self_attention: width {} is not a multiple of {} heads", width, options.heads),
        loc);
  const bool cached = options.cache.position.valid();
  check_cache(options.cache, x.dim(0), loc);
  if (cached && (!options.causal || length > options.cache.capacity))
    throw UsageError(fmt::format("self_attention: a cache of {} places needs causal attention and "
                                 "no more tokens than places, got {}",
                                 options.cache.capacity, x.type().text()),
                     loc);
  if (options.before.valid() && !options.causal)
    throw UsageError("self_attention: keys that stand before a row need causal attention", loc);
  const Scope scope(trace, name);
  const Tensor qkv = reshape(
      linear(trace, "qkv", x, 3 * width, {.bias = options.bias, .beside = options.beside}, loc),
      {batch, length, 3 * options.heads, width / options.heads}, loc);
  AttentionOptions attention_options;
  if (trace.training() && options.dropout > 0) {
    attention_options.dropout = options.dropout;
    attention_options.random = trace.random();
  }
  Tensor mixed;  // [B,T,H,D]
  if (cached || options.before.valid()) {
    mixed = attend_heads(trace, qkv,
                         {.heads = options.heads,
                          .groups = options.heads,
                          .mask = options.mask,
                          .cache = options.cache,
                          .before = options.before,
                          .attention = attention_options},
                         loc);
  } else {
    attention_options.causal = options.causal;
    attention_options.mask = options.mask;
    mixed = packed_attention(qkv, options.heads, attention_options, loc);
  }
  return linear(trace, "projection", reshape(mixed, {batch, length, width}, loc), width,
                {options.bias, options.projection_initializer, options.beside}, loc);
}

}  // namespace fullbore::nn

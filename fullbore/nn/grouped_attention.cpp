#include "fullbore/nn/grouped_attention.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/ops/packed_attention.h"

namespace fullbore::nn {
namespace {

void check(Tensor x, const GroupedAttentionOptions& options, SourceLoc loc) {
  const auto refuse = [&](const std::string& reason) {
    throw UsageError("grouped_attention: " + reason, loc);
  };
  if (x.rank() != 3) refuse(fmt::format("needs x [B,T,C], got {}", x.type().text()));
  if (options.heads < 1 || options.groups < 1 || options.heads % options.groups != 0)
    refuse(fmt::format("{} heads of queries are not a multiple of {} of keys", options.heads,
                       options.groups));
  if (options.head_width < 0 || (options.head_width == 0 && x.dim(2) % options.heads != 0))
    refuse(fmt::format("width {} is not a multiple of {} heads", x.dim(2), options.heads));
  if (options.window < 0) refuse(fmt::format("a window of {} tokens", options.window));
  check_cache(options.cache, x.dim(0), loc);
  if (options.cache.position.valid() && x.dim(1) > options.cache.capacity)
    refuse(fmt::format("a cache of {} places has no room for {}", options.cache.capacity,
                       x.type().text()));
}

Tensor attend(Trace& trace, Tensor qkv, const GroupedAttentionOptions& options, SourceLoc loc) {
  AttentionOptions attention_options;
  if (trace.training() && options.dropout > 0) {
    attention_options.dropout = options.dropout;
    attention_options.random = trace.random();
  }
  if (options.cache.position.valid() || options.before.valid())
    return attend_heads(trace, qkv,
                        {.heads = options.heads,
                         .groups = options.groups,
                         .window = options.window,
                         .mask = options.mask,
                         .cache = options.cache,
                         .before = options.before,
                         .attention = attention_options},
                        loc);
  const int64_t length = qkv.dim(1);
  attention_options.causal = true;
  attention_options.mask = options.mask;
  if (options.window > 0 && options.window < length)
    attention_options.mask =
        both_masks(visible_window(trace.builder(), length, options.window), options.mask);
  return packed_attention(qkv, options.heads, attention_options, loc);
}

}  // namespace

Tensor grouped_attention(Trace& trace, const std::string& name, Tensor x,
                         const GroupedAttentionOptions& options, SourceLoc loc) {
  check(x, options, loc);
  const Scope scope(trace, name);
  const int64_t batch = x.dim(0), length = x.dim(1);
  const int64_t width = options.head_width > 0 ? options.head_width : x.dim(2) / options.heads;
  const auto heads = [&](const char* part, int64_t count) {
    const Tensor y = linear(trace, part, x, count * width,
                            {.bias = options.bias, .beside = options.beside}, loc);
    return reshape(y, {batch, length, count, width}, loc);
  };
  const Tensor parts[] = {heads("query", options.heads), heads("key", options.groups),
                          heads("value", options.groups)};
  Tensor qkv = concat(parts, 2, loc);
  if (options.rotary.cosine.valid())
    qkv = rotate(qkv, options.rotary, options.heads + options.groups, loc);
  const Tensor mixed = attend(trace, qkv, options, loc);
  return linear(trace, "projection", reshape(mixed, {batch, length, options.heads * width}, loc),
                x.dim(2), {options.projection_bias, options.projection_initializer, options.beside},
                loc);
}

Tensor gated_mlp(Trace& trace, const std::string& name, Tensor x, const GatedMlpOptions& options,
                 SourceLoc loc) {
  const Scope scope(trace, name);
  const LinearOptions linear_options{.bias = options.bias};
  const Tensor gate = linear(trace, "gate", x, options.hidden, linear_options, loc);
  const Tensor up = linear(trace, "up", x, options.hidden, linear_options, loc);
  return linear(trace, "down", silu(gate, loc) * up, x.dim(-1),
                {options.bias, options.down_initializer}, loc);
}

}  // namespace fullbore::nn

#include "workloads/peptide/layers.h"

#include <cmath>

#include "fullbore/nn/modules.h"
#include "fullbore/ops/packed_attention.h"

namespace fullbore::peptide {
namespace {

// Weights and biases alike, by the number of inputs.
Initializer by_inputs(int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return Initializer::uniform(-bound, bound);
}

struct Weights {
  Tensor weight;  // [O,I]
  Tensor bias;    // [O]
};

Weights weights(Trace& trace, const char* name, int64_t inputs, int64_t outputs) {
  const Scope scope(trace, name);
  return {trace.parameter("weight", {outputs, inputs}, by_inputs(inputs)),
          trace.parameter("bias", {outputs}, by_inputs(inputs))};
}

// One matmul for several projections of x: their parameters stay apart, the matrices are put together once a step.
Tensor joint_projections(Trace& trace, std::initializer_list<const char*> names, Tensor x) {
  const int64_t width = x.dim(-1);
  std::vector<Tensor> matrices;
  std::vector<Tensor> biases;
  for (const char* name : names) {
    const Weights w = weights(trace, name, width, width);
    matrices.push_back(w.weight);
    biases.push_back(w.bias);
  }
  return linear(x, concat(matrices, 0), concat(biases, 0));
}

}  // namespace

Tensor dense(Trace& trace, const char* name, Tensor x, int64_t outputs) {
  const Weights w = weights(trace, name, x.dim(-1), outputs);
  const Scope scope(trace, name);
  return linear(x, w.weight, w.bias);
}

Tensor Layers::encode(const std::string& name, Tensor x, Tensor visible) const {
  const Scope scope(trace_, name);
  const Tensor h = nn::layer_norm(trace_, "attention_norm", x);
  x = x + dropped(self_attention("attention", h, visible));
  return x + dropped(feed_forward(nn::layer_norm(trace_, "feed_forward_norm", x)));
}

Layers::Context Layers::look_at(const std::string& name, Tensor context) const {
  const Scope scope(trace_, name);
  const Scope attention(trace_, "cross_attention");
  const Tensor both = joint_projections(trace_, {"key", "value"}, context);
  const Tensor heads_first = transpose(by_heads(both, 2), {0, 2, 1, 3});
  const int64_t heads = options_.heads;
  return {slice(heads_first, 1, 0, heads), slice(heads_first, 1, heads, 2 * heads)};
}

Tensor Layers::decode(const std::string& name, Tensor x, const Context& context,
                      Tensor visible) const {
  const Scope scope(trace_, name);
  Tensor h = nn::layer_norm(trace_, "self_norm", x);
  x = x + dropped(self_attention("self_attention", h, {}));
  h = nn::layer_norm(trace_, "cross_norm", x);
  x = x + dropped(cross_attention(h, context, visible));
  return x + dropped(feed_forward(nn::layer_norm(trace_, "feed_forward_norm", x)));
}

Tensor Layers::dropped(Tensor x) const { return nn::dropout(trace_, x, options_.dropout); }

// [B,L,parts * H] -> [B,L,parts * heads,D].
Tensor Layers::by_heads(Tensor x, int64_t parts) const {
  return reshape(x, {x.dim(0), x.dim(1), parts * options_.heads, options_.width / options_.heads});
}

AttentionOptions Layers::attention_options(Tensor visible) const {
  AttentionOptions options{.mask = visible};
  if (trace_.training() && options_.dropout > 0) {
    options.dropout = options_.dropout;
    options.random = trace_.random();
  }
  return options;
}

// [B,L,heads,D] -> [B,L,H].
Tensor Layers::output(Tensor mixed) const {
  return dense(trace_, "output", reshape(mixed, {mixed.dim(0), mixed.dim(1), options_.width}),
               options_.width);
}

Tensor Layers::self_attention(const char* name, Tensor x, Tensor visible) const {
  const Scope scope(trace_, name);
  const Tensor all = by_heads(joint_projections(trace_, {"query", "key", "value"}, x), 3);
  return output(packed_attention(all, options_.heads, attention_options(visible)));
}

Tensor Layers::cross_attention(Tensor x, const Context& context, Tensor visible) const {
  const Scope scope(trace_, "cross_attention");
  const Tensor queries =
      transpose(by_heads(dense(trace_, "query", x, options_.width), 1), {0, 2, 1, 3});
  const Tensor mixed = attention(queries, context.keys, context.values, attention_options(visible));
  return output(transpose(mixed, {0, 2, 1, 3}));
}

// Its result is dropped out here, and once more where it is added, as in the reference.
Tensor Layers::feed_forward(Tensor x) const {
  const Scope scope(trace_, "feed_forward");
  const Tensor h = gelu(dense(trace_, "up", x, 4 * options_.width));
  return dropped(dense(trace_, "down", dropped(h), options_.width));
}

}  // namespace fullbore::peptide

#include "workloads/latentwire/conditioning.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "workloads/latentwire/xavier.h"

namespace fullbore::latentwire {
namespace {

constexpr double kGate = 0.5, kCoprocessorScale = 0.8, kQueryDeviation = 0.02;
constexpr int64_t kInner = 4;

/// A linear layer whose parameters are declared before it is used.
struct Dense {
  Tensor weight, bias;

  Tensor operator()(Tensor x) const {
    return fullbore::linear(x, cast(weight, x.dtype()),
                            bias.valid() ? cast(bias, x.dtype()) : Tensor());
  }
};

Dense dense(Trace& trace, const std::string& name, int64_t inputs, int64_t outputs,
            bool bias = true) {
  const Scope scope(trace, name);
  const Tensor weight =
      trace.parameter("weight", {outputs, inputs}, xavier(inputs, outputs).weight_initializer);
  return {weight, bias ? trace.parameter("bias", {outputs}, Initializer::zeros()) : Tensor()};
}

struct Norm {
  Tensor gain, bias;

  Tensor operator()(Tensor x) const { return fullbore::layer_norm(x, gain, bias, 1e-5); }
};

Norm norm(Trace& trace, const std::string& name, int64_t width) {
  const Scope scope(trace, name);
  return {trace.parameter("weight", {width}, Initializer::ones()),
          trace.parameter("bias", {width}, Initializer::zeros())};
}

// [B,T,C] -> [B,H,T,C/H], and back.
Tensor heads_of(Tensor x, int64_t heads) {
  return swap_axes(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}
Tensor joined_heads(Tensor x) {
  return reshape(swap_axes(x, 1, 2), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

/// Hidden states look at the slots, then go through an MLP; both sums are gated.
struct AttendingLayer {
  int64_t heads = 1;
  Norm before_attention, before_mlp;
  Dense query, key, value, output, up, down;
  Tensor gate;
  Tensor slots;

  Tensor operator()(Tensor x) const {
    const Tensor share = cast(tanh(gate), x.dtype());
    const Tensor z = cast(slots, x.dtype());
    const Tensor seen = attention(heads_of(query(before_attention(x)), heads),
                                  heads_of(key(z), heads), heads_of(value(z), heads));
    x = x + share * output(joined_heads(seen));
    return x + share * down(gelu(up(before_mlp(x))));
  }
};

AttendingLayer attending_layer(Trace& trace, const std::string& name, int64_t width, int64_t heads,
                               Tensor slots) {
  const Scope scope(trace, name);
  const int64_t wire = slots.dim(2);
  return {.heads = heads,
          .before_attention = norm(trace, "attention_norm", width),
          .before_mlp = norm(trace, "mlp_norm", width),
          .query = dense(trace, "query", width, width),
          .key = dense(trace, "key", wire, width),
          .value = dense(trace, "value", wire, width),
          .output = dense(trace, "output", width, width),
          .up = dense(trace, "up", width, kInner * width),
          .down = dense(trace, "down", kInner * width, width),
          .gate = trace.parameter("gate", {}, Initializer::given({kGate})),
          .slots = slots};
}

// Keys and values of one block, [B,T,G D] each -> [B,G,T,D].
nn::KeyValues key_values(Tensor keys, Tensor values, int64_t groups) {
  return {heads_of(keys, groups), heads_of(values, groups)};
}

nn::KeyValues both(const nn::KeyValues& a, const nn::KeyValues& b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  const Tensor keys[] = {a.keys, b.keys}, values[] = {a.values, b.values};
  return {concat(keys, 2), concat(values, 2)};
}

std::vector<nn::KeyValues> deep_prefix(Trace& trace, const nn::DecoderConfig& decoder,
                                       Tensor prefix) {
  const Scope scope(trace, "deep_prefix");
  const int64_t groups = decoder.key_heads(), outputs = groups * decoder.key_width();
  Tensor x = norm(trace, "norm", decoder.width)(prefix);
  x = x + dense(trace, "mix", decoder.width, decoder.width, false)(x);
  std::vector<nn::KeyValues> blocks;
  for (int64_t layer = 0; layer < decoder.layers; ++layer) {
    const Scope block(trace, fmt::format("{}", layer));
    const Dense keys = dense(trace, "keys", decoder.width, outputs, false);
    const Dense values = dense(trace, "values", decoder.width, outputs, false);
    blocks.push_back(key_values(keys(x), values(x), groups));
  }
  return blocks;
}

std::vector<nn::KeyValues> coprocessor(Trace& trace, const nn::DecoderConfig& decoder,
                                       int64_t inner, Tensor slots) {
  const Scope scope(trace, "coprocessor");
  const int64_t groups = decoder.key_heads(), outputs = groups * decoder.key_width();
  const Tensor mean = reduce_mean(slots, {1}, true);
  const Tensor x = gelu(dense(trace, "inner", slots.dim(2), inner)(mean));
  std::vector<nn::KeyValues> blocks;
  for (int64_t layer = 0; layer < decoder.layers; ++layer) {
    const Scope block(trace, fmt::format("{}", layer));
    const Dense keys = dense(trace, "keys", inner, outputs);
    const Dense values = dense(trace, "values", inner, outputs);
    blocks.push_back(
        key_values(keys(x) * kCoprocessorScale, values(x) * kCoprocessorScale, groups));
  }
  return blocks;
}

/// B A of a matrix, scaled.
struct LowRank {
  Tensor down, up;
  double scale = 1;

  Tensor operator()(Tensor x) const {
    return fullbore::linear(fullbore::linear(x, cast(down, x.dtype())), cast(up, x.dtype())) *
           scale;
  }
};

using LowRankTerms = std::map<std::pair<int64_t, std::string>, LowRank>;

LowRankTerms low_rank_terms(Trace& trace, const ConditioningOptions& options,
                            const nn::DecoderConfig& decoder) {
  const Scope scope(trace, "low_rank");
  const int64_t width = decoder.width, keys = decoder.key_heads() * decoder.key_width();
  const int64_t queries = decoder.heads * decoder.key_width();
  const bool gpt2 = decoder.style == nn::DecoderConfig::Style::gpt2;
  struct Matrix {
    const char* part;
    int64_t inputs, outputs;
  };
  const std::vector<Matrix> matrices =
      gpt2 ? std::vector<Matrix>{{"qkv", width, 3 * width}, {"projection", width, width}}
           : std::vector<Matrix>{{"query", width, queries},
                                 {"key", width, keys},
                                 {"value", width, keys},
                                 {"projection", queries, width}};
  LowRankTerms terms;
  for (int64_t layer = 0; layer < std::min(options.adapted_blocks, decoder.layers); ++layer)
    for (const Matrix& matrix : matrices) {
      const Scope part(trace, fmt::format("{}.{}", layer, matrix.part));
      terms[{layer, matrix.part}] = {
          trace.parameter("down", {options.rank, matrix.inputs},
                          xavier(matrix.inputs, options.rank).weight_initializer),
          trace.parameter("up", {matrix.outputs, options.rank}, Initializer::zeros()),
          options.rank_scale / static_cast<double>(options.rank)};
    }
  return terms;
}

void check(const ConditioningOptions& options, const nn::DecoderConfig& decoder) {
  for (const int64_t block : options.attending_blocks)
    if (block < 1 || block > decoder.layers)
      throw UsageError(
          fmt::format("there is no block {} among 1 ... {} for hidden states to attend behind",
                      block, decoder.layers));
  if (!options.attending_blocks.empty() && decoder.width % options.attending_heads != 0)
    throw UsageError(fmt::format("width {} of a model is not a multiple of {} heads that attend",
                                 decoder.width, options.attending_heads));
}

}  // namespace

std::vector<int64_t> quarter_blocks(int64_t layers) {
  if (layers < 4) return {};
  return {layers / 4, layers / 2, 3 * layers / 4};
}

nn::DecoderAdditions condition(Trace& trace, const std::string& name,
                               const ConditioningOptions& options, const nn::DecoderConfig& decoder,
                               Tensor prefix, Tensor slots) {
  check(options, decoder);
  const Scope scope(trace, name);
  nn::DecoderAdditions additions;
  std::vector<nn::KeyValues> deep, pooled;
  if (options.deep_prefix) deep = deep_prefix(trace, decoder, prefix);
  if (options.coprocessor > 0) pooled = coprocessor(trace, decoder, options.coprocessor, slots);
  if (!deep.empty() || !pooled.empty())
    additions.before = [deep, pooled](int64_t layer) {
      const auto of = [&](const std::vector<nn::KeyValues>& blocks) {
        return blocks.empty() ? nn::KeyValues() : blocks[static_cast<size_t>(layer)];
      };
      return both(of(deep), of(pooled));
    };
  if (!options.attending_blocks.empty()) {
    std::map<int64_t, AttendingLayer> layers;
    for (const int64_t block : options.attending_blocks)
      layers[block - 1] = attending_layer(trace, fmt::format("attending.{}", block), decoder.width,
                                          options.attending_heads, slots);
    additions.behind = [layers = std::move(layers)](int64_t layer, Tensor x) {
      const auto found = layers.find(layer);
      return found == layers.end() ? x : found->second(x);
    };
  }
  if (options.rank > 0)
    additions.beside = [terms = low_rank_terms(trace, options, decoder)](
                           int64_t layer, const std::string& part, Tensor x, int64_t) {
      const auto found = terms.find({layer, part});
      return found == terms.end() ? Tensor() : found->second(x);
    };
  return additions;
}

Tensor gist_embeddings(Trace& trace, const std::string& name, Tensor slots, int64_t tokens,
                       int64_t heads, int64_t width) {
  const Scope scope(trace, name);
  const int64_t batch = slots.dim(0), wire = slots.dim(2);
  const Tensor queries =
      trace.parameter("queries", {tokens, wire}, Initializer::normal(kQueryDeviation));
  const Tensor rows =
      broadcast_to(expand_dims(cast(queries, slots.dtype()), 0), {batch, tokens, wire});
  const auto project = [&](const char* part, Tensor x, int64_t outputs) {
    return dense(trace, part, wire, outputs)(x);
  };
  const Tensor seen = attention(heads_of(project("query", rows, wire), heads),
                                heads_of(project("key", slots, wire), heads),
                                heads_of(project("value", slots, wire), heads));
  const Tensor mixed = rows + project("mixed", joined_heads(seen), wire);
  return project("output", norm(trace, "norm", wire)(mixed), width);
}

Tensor gist_factors(Trace& trace, Tensor lengths, int64_t tokens, double dropped) {
  const int64_t batch = lengths.dim(0);
  const Tensor place = iota(lengths.builder(), {lengths.dtype(), {batch, tokens}}, 1);
  Tensor counts = cast(less(place, reshape(lengths, {batch, 1})), DType::f32);
  if (trace.training() && dropped > 0) {
    const Tensor draws = random_uniform(trace.random(), {DType::f32, {batch, tokens}});
    counts = counts * cast(greater_equal(draws, dropped), DType::f32);
  }
  return counts / (maximum(reduce_sum(counts, {1}, true), 1.0) * static_cast<double>(batch));
}

}  // namespace fullbore::latentwire

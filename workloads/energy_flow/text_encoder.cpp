#include "workloads/energy_flow/text_encoder.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "fullbore/nn/modules.h"

namespace fullbore::energy_flow {
namespace {

constexpr std::array<int64_t, 4> kDilations = {1, 2, 4, 8};
constexpr int64_t kKernel = 5;
constexpr double kLongestWave = 10000;

nn::LinearOptions glorot(int64_t outputs, int64_t inputs) {
  return {.weight_initializer =
              Initializer::normal(std::sqrt(2.0 / static_cast<double>(outputs + inputs)))};
}

// Section 3.5 of Vaswani et al. 2017: sines at even channels, cosines at odd ones.
Initializer sinusoids(int64_t width) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(kTextPlaces * width));
  for (int64_t place = 0; place < kTextPlaces; ++place)
    for (int64_t channel = 0; channel < width; ++channel) {
      const double exponent =
          static_cast<double>(channel - channel % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(place) / std::pow(kLongestWave, exponent);
      values.push_back(channel % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return Initializer::given(std::move(values));
}

// x [B,T,C], counts bool [B,T] -> [B,C]
Tensor mean_of_tokens(Tensor x, Tensor counts) {
  const Tensor factor = cast(expand_dims(counts, 2), x.dtype());
  return reduce_sum(x * factor, {1}) / reduce_sum(factor, {1});
}

Tensor transformer_layer(Trace& trace, Tensor x, Tensor mask, const EncoderSizes& sizes) {
  const int64_t width = sizes.width;
  const auto drop = [&](Tensor y) { return nn::dropout(trace, y, sizes.dropout); };
  const Tensor mixed =
      nn::self_attention(trace, "attention", x,
                         {.heads = sizes.heads,
                          .causal = false,
                          .dropout = sizes.dropout,
                          .projection_initializer = glorot(width, width).weight_initializer,
                          .mask = mask});
  x = nn::layer_norm(trace, "attention_norm", x + drop(mixed));
  const Tensor hidden =
      drop(gelu(nn::linear(trace, "up", x, sizes.hidden, glorot(sizes.hidden, width))));
  const Tensor y = nn::linear(trace, "down", hidden, width, glorot(width, sizes.hidden));
  return nn::layer_norm(trace, "norm", x + drop(y));
}

// x [B,T,C] -> [B,T,O]: output t sees tokens t, t - d, ..., t - 4 d.
Tensor dilated_convolution(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
                           int64_t dilation) {
  const Scope scope(trace, name);
  const int64_t length = x.dim(1), inputs = kKernel * x.dim(2);
  const Tensor padded = pad(x, 1, (kKernel - 1) * dilation, 0);
  std::vector<Tensor> taps;
  for (int64_t tap = 0; tap < kKernel; ++tap)
    taps.push_back(slice(padded, 1, tap * dilation, tap * dilation + length));
  const Tensor direction =
      trace.parameter("direction", {outputs, inputs}, Initializer::normal(0.01));
  const Tensor gain =
      trace.parameter("gain", {outputs}, Initializer::normal(0, std::numbers::sqrt2));
  const Tensor bias = trace.parameter("bias", {outputs}, Initializer::zeros());
  const Tensor scale = gain * rsqrt(reduce_sum(direction * direction, {1}));
  const Tensor weight = direction * expand_dims(scale, 1);
  return linear(concat(taps, 2), cast(weight, x.dtype()), cast(bias, x.dtype()));
}

Tensor convolution_block(Trace& trace, Tensor x, int64_t dilation, const EncoderSizes& sizes) {
  Tensor y = x;
  for (const char* name : {"first", "second"})
    y = nn::dropout(trace, relu(dilated_convolution(trace, name, y, sizes.hidden, dilation)),
                    sizes.dropout);
  if (x.dim(2) != sizes.hidden)
    x = nn::linear(trace, "shortcut", x, sizes.hidden, glorot(sizes.hidden, x.dim(2)));
  return relu(x + y);
}

Tensor token_vectors(Trace& trace, Tensor tokens, const EncoderSizes& sizes) {
  return nn::embedding(trace, "tokens", tokens, sizes.vocabulary, sizes.width,
                       Initializer::normal(1));
}

}  // namespace

Tensor encode_to_surface(Trace& trace, Tensor tokens, const EncoderSizes& sizes) {
  const Scope scope(trace, "encoder");
  const int64_t batch = tokens.dim(0), length = tokens.dim(1);
  const Tensor counts = not_equal(tokens, static_cast<double>(sizes.padding));
  const Tensor positions =
      nn::embedding_table(trace, "positions", kTextPlaces, sizes.width, sinusoids(sizes.width));
  Tensor x = token_vectors(trace, tokens, sizes) + slice(positions, 0, 0, length);
  x = nn::dropout(trace, x, sizes.dropout);
  const Tensor mask = reshape(counts, {batch, 1, 1, length});
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const Scope layers(trace, fmt::format("layers.{}", layer));
    x = transformer_layer(trace, x, mask, sizes);
  }
  x = mean_of_tokens(x, counts);
  x = gelu(nn::linear(trace, "inner", x, sizes.width, glorot(sizes.width, sizes.width)));
  x = nn::dropout(trace, nn::layer_norm(trace, "inner_norm", x), sizes.dropout);
  return tanh(nn::linear(trace, "surface", x, sizes.outputs, glorot(sizes.outputs, sizes.width)));
}

Tensor encode_to_embedding(Trace& trace, Tensor tokens, const EncoderSizes& sizes) {
  const Scope scope(trace, "encoder");
  Tensor x = token_vectors(trace, tokens, sizes);
  for (size_t block = 0; block < kDilations.size(); ++block) {
    const Scope blocks(trace, fmt::format("blocks.{}", block));
    x = convolution_block(trace, x, kDilations[block], sizes);
  }
  x = mean_of_tokens(x, not_equal(tokens, static_cast<double>(sizes.padding)));
  return nn::linear(trace, "embedding", x, sizes.outputs, glorot(sizes.outputs, sizes.hidden));
}

}  // namespace fullbore::energy_flow

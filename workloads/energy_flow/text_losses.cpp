#include "workloads/energy_flow/text_losses.h"

#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/surface_mapper.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kShareOfCosine = 0.7;
constexpr double kShareOfSquares = 0.7;
constexpr double kLeastNorm = 1e-12;

MapperWeights mapper(Trace& trace, const Config& config) {
  const EnergyKeys& keys = energy_keys(config);
  return declare_mapper(trace, keys.model.embedding_width, keys.lattice.width * keys.lattice.height,
                        keys.model.train_mapper);
}

// Of rows [B,N] -> [B].
Tensor cosine(Tensor a, Tensor b) {
  const auto squares = [](Tensor x) { return reduce_sum(x * x, {1}); };
  return reduce_sum(a * b, {1}) * rsqrt(maximum(squares(a) * squares(b), kLeastNorm));
}

Tensor as_f32(Tensor x) { return cast(x, DType::f32); }

}  // namespace

TextTokens text_tokens(const TextForm& form) {
  return {form.vocabulary(), form.padding(), form.begin(), form.end()};
}

bool has_bridge(const Config& config) { return energy_keys(config).bridge.encoder != "none"; }

EncoderSizes encoder_sizes(const Config& config, const TextTokens& tokens) {
  const EnergyKeys& keys = energy_keys(config);
  return {.vocabulary = tokens.vocabulary,
          .padding = tokens.padding,
          .width = keys.bridge.width,
          .layers = keys.bridge.layers,
          .heads = keys.bridge.heads,
          .hidden = keys.bridge.hidden,
          .dropout = keys.bridge.dropout,
          .outputs = keys.bridge.encoder == "dilated" ? keys.model.embedding_width
                                                      : keys.lattice.width * keys.lattice.height};
}

DecoderSizes decoder_sizes(const Config& config, const TextTokens& tokens) {
  const EnergyKeys& keys = energy_keys(config);
  return {.vocabulary = tokens.vocabulary,
          .surface = keys.lattice.width * keys.lattice.height,
          .memory = keys.bridge.memory,
          .width = keys.bridge.width,
          .layers = keys.bridge.decoder_layers,
          .heads = keys.bridge.heads,
          .hidden = keys.bridge.hidden,
          .dropout = keys.bridge.dropout};
}

EncodedTexts encode_texts(Trace& trace, const Config& config, const TextTokens& form,
                          Tensor tokens) {
  const EncoderSizes sizes = encoder_sizes(config, form);
  if (energy_keys(config).bridge.encoder != "dilated") {
    const Tensor surface = encode_to_surface(trace, tokens, sizes);
    return {surface, surface};
  }
  const Tensor embedding = encode_to_embedding(trace, tokens, sizes);
  return {embedding, map_to_surface(mapper(trace, config), embedding)};
}

DecoderLoss decoder_loss(Trace& trace, const Config& config, const TextTokens& form, Tensor surface,
                         Tensor tokens) {
  const DecoderSizes sizes = decoder_sizes(config, form);
  const TeacherForcing forced = teacher_forcing(tokens, form.padding, form.begin, form.end);
  const Tensor memory = adapt_surface(trace, surface, sizes);
  const LanguageModelHead head = decode_texts(trace, memory, forced.inputs, sizes);
  const LanguageModelLoss loss = language_model_loss(trace, head, forced.targets, {});
  const Tensor told = argmax(language_model_logits(trace, head), 2);
  const Tensor right = as_f32(equal(told, forced.targets));
  return {loss, reduce_sum(right, {0, 1}) / maximum(loss.predictions, 1.0)};
}

LossFunction bridge_loss(const Config& config, const TextTokens& form) {
  return [config, form](Trace& trace, std::span<const Tensor> batch) {
    const Tensor embedding = batch[0], tokens = batch[1];
    const Tensor surface = stop_gradient(map_to_surface(mapper(trace, config), embedding));
    const EncodedTexts encoded = encode_texts(trace, config, form, tokens);
    const bool tells_surface = energy_keys(config).bridge.encoder != "dilated";
    const Tensor prediction = as_f32(encoded.prediction);
    const Tensor wanted = as_f32(tells_surface ? surface : embedding);
    const Tensor difference = prediction - wanted;
    const Tensor squares = reduce_mean(difference * difference, {0, 1});
    const Tensor alike = reduce_mean(cosine(prediction, wanted), {0});
    const Tensor encoder = kShareOfCosine * (1.0 - alike) + kShareOfSquares * squares;
    const DecoderLoss decoder = decoder_loss(trace, config, form, surface, tokens);
    Loss loss(encoder + decoder.loss.mean);
    const Tensor cosines = reduce_mean(cosine(as_f32(encoded.surface), as_f32(surface)), {0});
    loss.metrics = {{"encoder_loss", encoder},
                    {"encoder_cosine", cosines},
                    {"decoder_loss", decoder.loss.mean},
                    {"token_accuracy", decoder.accuracy}};
    return loss;
  };
}

}  // namespace fullbore::energy_flow

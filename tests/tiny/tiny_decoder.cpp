// A model of texts whose tokens see those before them, with a paged cache and with texts that begin alike: what rewards
// need. Workloads that train the models of others are tested with it, whichever folders of workloads/ there are.
#include <fmt/format.h>

#include "fullbore/app/workload.h"
#include "fullbore/nn/decoder_model.h"
#include "fullbore/nn/modules.h"
#include "fullbore/text/paged_rows.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"

namespace fullbore {
namespace {

nn::DecoderConfig decoder_of(const Config& config, int64_t tokens) {
  const TextKeys::Model& sizes = text_keys(config).model;
  return {.style = nn::DecoderConfig::Style::llama,
          .vocabulary = table_rows(config, tokens),
          .layers = sizes.layers,
          .heads = sizes.heads,
          .width = sizes.width,
          .context = sizes.context,
          .dropout = config.model.dropout};
}

Tensor states(Trace& trace, Tensor tokens, const nn::DecoderConfig& decoder,
              nn::DecoderInputs inputs = {}) {
  inputs.embeddings = nn::decoder_embeddings(trace, tokens, decoder);
  return nn::decoder_states(trace, inputs, decoder).last;
}

/// h [B,1,C] -> logits [B,V].
Tensor logits(Trace& trace, Tensor h, const nn::DecoderConfig& decoder) {
  return squeeze(language_model_logits(trace, nn::decoder_head(trace, h, decoder)), 1);
}

LossFunction loss(const Config& config, int64_t tokens) {
  return [=, decoder = decoder_of(config, tokens)](Trace& trace, std::span<const Tensor> batch) {
    const LanguageModelLoss loss = language_model_loss(
        trace, nn::decoder_head(trace, states(trace, batch[0], decoder), decoder), batch[1],
        loss_options(config, trace.training()));
    return Loss(loss.mean, loss.predictions);
  };
}

HiddenFunction hidden(const Config& config, int64_t tokens) {
  return [decoder = decoder_of(config, tokens)](Trace& trace, Tensor inputs) {
    return nn::decoder_head(trace, states(trace, inputs, decoder), decoder);
  };
}

BranchedHiddenFunction branched_hidden(const Config& config, int64_t tokens) {
  return [decoder = decoder_of(config, tokens)](Trace& trace, const BranchedTokens& inputs) {
    const nn::DecoderInputs places{
        .embeddings = {}, .positions = inputs.positions, .mask = nn::same_branch(inputs.branches)};
    return nn::decoder_head(trace, states(trace, inputs.tokens, decoder, places), decoder);
  };
}

DecodeFunction decode(const Config& config, int64_t tokens) {
  return [decoder = decoder_of(config, tokens)](Trace& trace, Tensor inputs, Tensor position,
                                                Tensor row, int64_t capacity) {
    const nn::DecoderInputs cached{.embeddings = {},
                                   .cache = {.position = position, .capacity = capacity}};
    const Tensor h = states(trace, inputs, decoder, cached);
    return logits(trace, dynamic_slice(h, row, 1, 1), decoder);
  };
}

PagedDecodeFunction paged_decode(const Config& config, int64_t tokens) {
  return [decoder = decoder_of(config, tokens)](Trace& trace, const PagedInputs& inputs) {
    const nn::DecoderInputs cached{.embeddings = {}, .cache = paged_cache(inputs)};
    return logits(trace, last_rows(states(trace, inputs.tokens, decoder, cached), inputs), decoder);
  };
}

std::string identity(const Config& config) {
  const TextKeys::Model& sizes = text_keys(config).model;
  return fmt::format("tiny_decoder layers={} heads={} width={} context={} vocabulary={}",
                     sizes.layers, sizes.heads, sizes.width, sizes.context, sizes.vocabulary);
}

Workload tiny_decoder() {
  TextModel model;
  model.name = "tiny_decoder";
  model.loss = loss;
  model.decode = decode;
  model.paged_decode = paged_decode;
  model.hidden = hidden;
  model.branched_hidden = branched_hidden;
  model.identity = identity;
  model.matrix_elements = [](const Config& config) {
    const TextKeys::Model& sizes = text_keys(config).model;
    return static_cast<double>(sizes.layers * 16 * sizes.width * sizes.width);
  };
  model.token_table = "token_embedding.weight";
  return text_workload("tiny_decoder", {std::move(model)});
}

const WorkloadRegistrar kTinyDecoder{tiny_decoder()};

}  // namespace
}  // namespace fullbore

#include "workloads/language/gpt_job.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "workloads/language/gguf_layout.h"
#include "workloads/language/gpt_keys.h"
#include "workloads/language/huggingface_layout.h"

namespace fullbore {
namespace {

/// "gpt layers=4 heads=4 ...": all that decides what the parameters mean.
std::string identity(const Config& config) {
  const TextKeys::Model& sizes = text_keys(config).model;
  const GptKeys& own = gpt_keys(config);
  // Runs from before there was a choice say neither norm nor positions.
  const std::string norm = own.norm == "layer" ? "" : " norm=" + own.norm;
  const std::string positions = own.positions == "learned" ? "" : " positions=" + own.positions;
  return fmt::format(
      "{} layers={} heads={} width={} context={} dropout={} bias={} tie_head={} activation={} "
      "vocabulary={}{}{}",
      config.model.name, sizes.layers, sizes.heads, sizes.width, sizes.context,
      config.model.dropout, own.bias, own.tie_head, own.activation, sizes.vocabulary, norm,
      positions);
}

LossFunction loss(const Config& config, int64_t tokens) {
  const LanguageModelConfig model = model_config(config, tokens);
  const bool packed = text_keys(config).data.batching == "packed";
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const LanguageModelLossOptions options = loss_options(config, trace.training());
    // Behind a document of a bucket there is nothing that it could see: its model is causal.
    const LanguageModelLoss loss =
        packed ? gpt_packed_loss(trace, {batch[0], batch[2], batch[3]}, batch[1], model, options)
               : gpt_loss(trace, batch[0], batch[1], model, options);
    return Loss(loss.mean, loss.predictions);
  };
}

DecodeFunction decode(const Config& config, int64_t tokens) {
  const LanguageModelConfig model = model_config(config, tokens);
  return [model](Trace& trace, Tensor inputs, Tensor position, Tensor row, int64_t capacity) {
    return gpt_decode(trace, {inputs, position, row, capacity}, model);
  };
}

PagedDecodeFunction paged_decode(const Config& config, int64_t tokens) {
  return [model = model_config(config, tokens)](Trace& trace, const PagedInputs& inputs) {
    return gpt_paged_decode(trace, inputs, model);
  };
}

HiddenFunction hidden(const Config& config, int64_t tokens) {
  return [model = model_config(config, tokens)](Trace& trace, Tensor inputs) {
    return gpt_hidden(trace, inputs, model);
  };
}

BranchedHiddenFunction branched_hidden(const Config& config, int64_t tokens) {
  return [model = model_config(config, tokens)](Trace& trace, const BranchedTokens& inputs) {
    return gpt_branched_hidden(trace, inputs, model);
  };
}

/// The position table, if there is one, and the matrices of the blocks.
double matrix_elements(const Config& config) {
  const TextKeys::Model& sizes = text_keys(config).model;
  const auto width = static_cast<double>(sizes.width);
  const bool table = gpt_keys(config).positions == "learned";
  return (table ? static_cast<double>(sizes.context) * width : 0) +
         static_cast<double>(sizes.layers) * 12 * width * width;
}

}  // namespace

LanguageModelConfig model_config(const Config& config, int64_t tokens) {
  const TextKeys::Model& sizes = text_keys(config).model;
  return {.vocabulary = table_rows(config, tokens),
          .layers = sizes.layers,
          .heads = sizes.heads,
          .width = sizes.width,
          .context = sizes.context,
          .dropout = config.model.dropout,
          .bias = gpt_keys(config).bias,
          .tie_head = gpt_keys(config).tie_head,
          .tanh_gelu = gpt_keys(config).activation == "gelu_tanh",
          .rms_norm = gpt_keys(config).norm == "rms",
          .rotary = gpt_keys(config).positions == "rotary"};
}

nn::DecoderConfig decoder_config(const LanguageModelConfig& model) {
  return {.style = nn::DecoderConfig::Style::gpt2,
          .vocabulary = model.vocabulary,
          .layers = model.layers,
          .heads = model.heads,
          .width = model.width,
          .context = model.context,
          .tie_head = model.tie_head,
          .dropout = model.dropout,
          .bias = model.bias,
          .tanh_gelu = model.tanh_gelu};
}

TextModel gpt_text_model() {
  TextModel model;
  model.name = "gpt";
  model.loss = loss;
  model.decode = decode;
  model.paged_decode = paged_decode;
  model.hidden = hidden;
  model.branched_hidden = branched_hidden;
  model.identity = identity;
  model.matrix_elements = matrix_elements;
  model.weight_keys = {"model.heads", "model.activation", "model.norm", "model.positions"};
  model.token_table = "token_embedding.weight";
  model.position_table = "position_embedding.weight";
  model.head = [](const Config& config) {
    return std::string(gpt_keys(config).tie_head ? "" : "head.weight");
  };
  const auto sizes = [](const Config& config, int64_t tokens) {
    const GptKeys& own = gpt_keys(config);
    if (own.norm != "layer" || own.positions != "learned")
      throw UsageError(fmt::format(
          "model.norm={} and model.positions={}: the layouts of others have GPT-2 with layer norms "
          "and learned "
          "positions alone; model.name=llama has RMS norms and rotary positions in them",
          own.norm, own.positions));
    return decoder_config(model_config(config, tokens));
  };
  model.layout = huggingface_layout(sizes);
  model.file_layouts = gguf_layouts(sizes);
  return model;
}

}  // namespace fullbore

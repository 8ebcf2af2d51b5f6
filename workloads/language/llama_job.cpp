#include "workloads/language/llama_job.h"

#include <fmt/format.h>

#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "workloads/language/gguf_layout.h"
#include "workloads/language/gpt_keys.h"
#include "workloads/language/huggingface_layout.h"
#include "workloads/language/llama.h"
#include "workloads/language/llama_keys.h"

namespace fullbore {
namespace {

nn::RotaryScaling scaling_of(const LlamaKeys& keys) {
  using Kind = nn::RotaryScaling::Kind;
  if (keys.rotary_scaling == "none") return {};
  if (keys.rotary_scaling == "linear") return {.kind = Kind::linear, .factor = keys.rotary_factor};
  return {Kind::llama3, keys.rotary_factor, keys.rotary_low, keys.rotary_high,
          keys.rotary_original};
}

/// "llama layers=4 heads=4 ...": all that decides what the parameters mean.
std::string identity(const Config& config) {
  const TextKeys::Model& sizes = text_keys(config).model;
  const LlamaKeys& own = llama_keys(config);
  return fmt::format(
      "{} layers={} heads={} key_value_heads={} head_width={} width={} mlp_width={} context={} "
      "dropout={} tie_head={} norm_epsilon={} rotary={} {} {} {} {} {} bias={} {} window={} {} "
      "vocabulary={}",
      config.model.name, sizes.layers, sizes.heads, own.key_value_heads, own.head_width,
      sizes.width, own.mlp_width, sizes.context, config.model.dropout, gpt_keys(config).tie_head,
      own.norm_epsilon, own.rotary_theta, own.rotary_scaling, own.rotary_factor, own.rotary_low,
      own.rotary_high, own.rotary_original, own.attention_bias, own.mlp_bias, own.window,
      own.window_layer, sizes.vocabulary);
}

LossFunction loss(const Config& config, int64_t tokens) {
  const nn::DecoderConfig model = llama_config(config, tokens);
  const bool packed = text_keys(config).data.batching == "packed";
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const LanguageModelLossOptions options = loss_options(config, trace.training());
    const LanguageModelLoss loss =
        packed ? llama_packed_loss(trace, {batch[0], batch[2], batch[3]}, batch[1], model, options)
               : llama_loss(trace, batch[0], batch[1], model, options);
    return Loss(loss.mean, loss.predictions);
  };
}

DecodeFunction decode(const Config& config, int64_t tokens) {
  return [model = llama_config(config, tokens)](Trace& trace, Tensor inputs, Tensor position,
                                                Tensor row, int64_t capacity) {
    return llama_decode(trace, {inputs, position, row, capacity}, model);
  };
}

PagedDecodeFunction paged_decode(const Config& config, int64_t tokens) {
  return [model = llama_config(config, tokens)](Trace& trace, const PagedInputs& inputs) {
    return llama_paged_decode(trace, inputs, model);
  };
}

HiddenFunction hidden(const Config& config, int64_t tokens) {
  return [model = llama_config(config, tokens)](Trace& trace, Tensor inputs) {
    return llama_hidden(trace, inputs, model);
  };
}

// A window is of neighbours in a row, which are not those in a text there.
BranchedHiddenFunction branched_hidden(const Config& config, int64_t tokens) {
  const nn::DecoderConfig model = llama_config(config, tokens);
  if (model.window > 0) return {};
  return [model](Trace& trace, const BranchedTokens& inputs) {
    return llama_branched_hidden(trace, inputs, model);
  };
}

/// Of the blocks, and of an output head of its own.
double matrix_elements(const Config& config) {
  nn::DecoderConfig model = llama_config(config, 1);
  model.vocabulary = 0;
  return static_cast<double>(nn::decoder_parameters(model));
}

}  // namespace

nn::DecoderConfig llama_config(const Config& config, int64_t tokens) {
  const TextKeys::Model& sizes = text_keys(config).model;
  const LlamaKeys& own = llama_keys(config);
  return {.style = nn::DecoderConfig::Style::llama,
          .vocabulary = table_rows(config, tokens),
          .layers = sizes.layers,
          .heads = sizes.heads,
          .width = sizes.width,
          .hidden = own.mlp_width,
          .context = sizes.context,
          .tie_head = gpt_keys(config).tie_head,
          .epsilon = own.norm_epsilon,
          .dropout = config.model.dropout,
          .groups = own.key_value_heads,
          .head_width = own.head_width,
          .theta = own.rotary_theta,
          .scaling = scaling_of(own),
          .attention_bias = own.attention_bias != "none",
          .projection_bias = own.attention_bias == "all",
          .mlp_bias = own.mlp_bias,
          .window = own.window,
          .window_layer = own.window_layer};
}

TextModel llama_text_model() {
  TextModel model;
  model.name = "llama";
  model.loss = loss;
  model.decode = decode;
  model.paged_decode = paged_decode;
  model.hidden = hidden;
  model.branched_hidden = branched_hidden;
  model.identity = identity;
  model.matrix_elements = matrix_elements;
  model.weight_keys = {"model.heads",        "model.key_value_heads", "model.norm_epsilon",
                       "model.rotary_theta", "model.rotary_scaling",  "model.rotary_factor",
                       "model.rotary_low",   "model.rotary_high",     "model.rotary_original",
                       "model.window",       "model.window_layer"};
  model.token_table = "token_embedding.weight";
  model.head = [](const Config& config) {
    return std::string(gpt_keys(config).tie_head ? "" : "head.weight");
  };
  model.layout = huggingface_layout(llama_config);
  model.file_layouts = gguf_layouts(llama_config);
  return model;
}

}  // namespace fullbore

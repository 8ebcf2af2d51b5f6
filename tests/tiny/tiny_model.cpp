// The workload of the tests' own: a model of texts that predicts from the current token alone. Rooms, and workloads that
// work on the model of any other, are tested with it, so that no test of theirs depends on a folder of workloads/.
#include <fmt/format.h>

#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"

namespace fullbore {
namespace {

struct Sizes {
  int64_t vocabulary = 0;
  int64_t width = 0;
  int64_t context = 0;
  double dropout = 0;
};

Sizes sizes_of(const Config& config, int64_t tokens) {
  const TextKeys::Model& model = text_keys(config).model;
  return {table_rows(config, tokens), model.width, model.context, config.model.dropout};
}

/// tokens i32 [B,T] -> what the head reads, [B,T,C], and the head, the token table.
LanguageModelHead body(Trace& trace, Tensor tokens, const Sizes& sizes) {
  const Tensor x = nn::embedding(trace, "token_embedding", tokens, sizes.vocabulary, sizes.width);
  const Tensor h = nn::linear(trace, "mixer", gelu(x), sizes.width);
  return {nn::layer_norm(trace, "norm", x + nn::dropout(trace, h, sizes.dropout)),
          nn::embedding_table(trace, "token_embedding", sizes.vocabulary, sizes.width), ""};
}

LossFunction loss(const Config& config, int64_t tokens) {
  return [=, sizes = sizes_of(config, tokens)](Trace& trace, std::span<const Tensor> batch) {
    if (batch[0].dim(1) > sizes.context) throw UsageError("tiny: more tokens than its context");
    const LanguageModelLoss loss = language_model_loss(
        trace, body(trace, batch[0], sizes), batch[1], loss_options(config, trace.training()));
    return Loss(loss.mean, loss.predictions);
  };
}

DecodeFunction decode(const Config& config, int64_t tokens) {
  return
      [sizes = sizes_of(config, tokens)](Trace& trace, Tensor inputs, Tensor, Tensor row, int64_t) {
        LanguageModelHead head = body(trace, inputs, sizes);
        head.hidden = dynamic_slice(head.hidden, row, 1, 1);
        return squeeze(language_model_logits(trace, head), 1);
      };
}

HiddenFunction hidden(const Config& config, int64_t tokens) {
  return [sizes = sizes_of(config, tokens)](Trace& trace, Tensor inputs) {
    return body(trace, inputs, sizes);
  };
}

std::string identity(const Config& config) {
  const TextKeys::Model& sizes = text_keys(config).model;
  return fmt::format("tiny width={} context={} vocabulary={}", sizes.width, sizes.context,
                     sizes.vocabulary);
}

Workload tiny() {
  TextModel model;
  model.name = "tiny";
  model.loss = loss;
  model.decode = decode;
  model.hidden = hidden;
  model.identity = identity;
  model.matrix_elements = [](const Config& config) {
    const auto width = static_cast<double>(text_keys(config).model.width);
    return width * width;
  };
  model.token_table = "token_embedding.weight";
  Workload workload = text_workload("tiny", {std::move(model)});
  workload.keys.is_default = true;
  return workload;
}

const WorkloadRegistrar kTiny{tiny()};

}  // namespace
}  // namespace fullbore

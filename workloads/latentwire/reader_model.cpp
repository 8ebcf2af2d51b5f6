#include "workloads/latentwire/reader_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/app/job_options.h"
#include "fullbore/base/check.h"
#include "fullbore/train/config_yaml.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/latent_keys.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kDocumentPairs = 3;
constexpr uint64_t kFirstHeldOut = 1'000'000;  // of the test key, behind rows that are measured on

// Of a document with its end: all fields with their longest values, and the longest question and answer again and again.
// Parts of a text are words of their own for each tokenizer of the corpus.
int64_t most_tokens(const CorpusTokenizer& tokenizer) {
  const auto count = [&](const std::string& text) {
    std::vector<int32_t> ids;
    tokenizer.append_tokens(text, ids);
    return std::ssize(ids);
  };
  int64_t places = 1 + count("Context:") + count("\n"), most_asked = 0;
  for (const auto& attributes : all_attributes()) {
    int64_t in_context = 0;
    for (const AttributeRow::Attribute& each : attributes) {
      in_context =
          std::max(in_context, count(fmt::format(" The {} is {}.", each.field, each.value)));
      most_asked = std::max(most_asked, count(AttributeRow{{each}, 0}.question() + kAnswerAnchor +
                                              " " + each.value + "\n"));
    }
    places += in_context;
  }
  return places + kDocumentPairs * most_asked;
}

class DocumentBatches : public BatchSource {
 public:
  DocumentBatches(const ReaderModel& model, uint64_t key, uint64_t first, int64_t batch,
                  std::vector<BatchField> fields)
      : tokenizer_(model.tokenizer),
        key_(key),
        first_(first),
        batch_(batch),
        fields_(std::move(fields)) {}

  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    const auto places = static_cast<size_t>(fields_[0].type.shape[1]);
    for (int64_t row = 0; row < batch_; ++row) {
      const uint64_t index =
          first_ + position * static_cast<uint64_t>(batch_) + static_cast<uint64_t>(row);
      std::vector<int32_t> ids = {CorpusTokenizer::kBegin};
      tokenizer_->append_tokens(attribute_document(key_, index, kDocumentPairs), ids);
      ids.push_back(CorpusTokenizer::kEnd);
      FB_CHECK(ids.size() <= places + 1, "a document of {} tokens", ids.size());
      const size_t at = static_cast<size_t>(row) * places, count = ids.size() - 1;
      auto* const inputs = static_cast<int32_t*>(buffers[0]) + at;
      auto* const targets = static_cast<int32_t*>(buffers[1]) + at;
      std::fill_n(inputs, places, CorpusTokenizer::kPadding);
      std::fill_n(targets, places, -1);
      std::copy_n(ids.begin(), count, inputs);
      std::copy_n(ids.begin() + 1, count, targets);
    }
  }

 private:
  std::shared_ptr<const CorpusTokenizer> tokenizer_;
  uint64_t key_, first_;
  int64_t batch_;
  std::vector<BatchField> fields_;
};

// Matrices start with a deviation of 0.02, which is little for so narrow a model: 1 / sqrt(inputs), and 0.1 of tables, learn
// in half the steps.
void widen_matrices(State& state) {
  constexpr double kDeviation = 0.02, kTableDeviation = 0.1;
  for (const StateEntry& entry : state.entries()) {
    if (entry.role != Role::parameter || entry.type.shape.rank() != 2) continue;
    const bool table = entry.name.find("embedding") != std::string::npos;
    const double inputs = static_cast<double>(entry.type.shape[1]);
    const double wanted = table ? kTableDeviation : 1 / std::sqrt(inputs);
    std::vector<float> values = state.read<float>(entry.name);
    for (float& value : values) value = static_cast<float>(value * (wanted / kDeviation));
    state.write(entry.name, values);
  }
}

std::shared_ptr<const BatchSource> documents(const Config& config, uint64_t key, uint64_t first) {
  return std::make_shared<DocumentBatches>(reader_model(latent_keys(config).reader.kind), key,
                                           first, config.train.batch_size, reader_fields(config));
}

}  // namespace

ReaderModel reader_model(const std::string& kind) {
  if (kind == "bytes")
    return {{.style = nn::DecoderConfig::Style::gpt2,
             .vocabulary = CorpusTokenizer::kFirstMerge,
             .layers = 3,
             .heads = 4,
             .width = 96,
             .hidden = 384,
             .context = 640},
            std::make_shared<const CorpusTokenizer>()};
  // Learnt once: it is a tenth of a second.
  static const auto bpe = std::make_shared<const CorpusTokenizer>(corpus_bpe());
  return {{.style = nn::DecoderConfig::Style::llama,
           .vocabulary = bpe->vocabulary_size(),
           .layers = 2,
           .heads = 4,
           .width = 64,
           .hidden = 168,
           .context = 640,
           .tie_head = false,
           .groups = 2},
          bpe};
}

std::vector<BatchField> reader_fields(const Config& config) {
  const int64_t places = most_tokens(*reader_model(latent_keys(config).reader.kind).tokenizer);
  const TensorType type{DType::i32, {config.train.batch_size, places}};
  return {{"tokens", type}, {"targets", type}};
}

LossFunction reader_loss(const Config& config) {
  const nn::DecoderConfig decoder = reader_model(latent_keys(config).reader.kind).decoder;
  return [decoder](Trace& trace, std::span<const Tensor> batch) {
    const Tensor embeddings = decoder_embeddings(trace, batch[0], decoder);
    const nn::DecoderStates states = decoder_states(trace, {.embeddings = embeddings}, decoder);
    const LanguageModelLoss loss =
        language_model_loss(trace, decoder_head(trace, states.last, decoder), batch[1], {});
    return Loss(loss.mean, loss.predictions);
  };
}

TrainingJob reader_job(const Config& config) {
  const ReaderModel model = reader_model(latent_keys(config).reader.kind);
  TrainingJob job;
  job.loss = reader_loss(config);
  job.initialize = widen_matrices;
  job.training = documents(config, kAttributeTrainingKey, 0);
  if (const int64_t held_out = latent_keys(config).data.validation_prompts; held_out > 0) {
    ValidationSet set;
    set.source = documents(config, kAttributeTestKey, kFirstHeldOut);
    set.batches = static_cast<uint64_t>(std::max<int64_t>(1, held_out / config.train.batch_size));
    job.validation = set;
  }
  job.tokens_per_step = config.train.batch_size * reader_fields(config)[0].type.shape[1];
  job.tokenizer = model.tokenizer->to_json();
  job.options = training_options(config);
  job.identity = {{"data", "documents of the attribute corpus"},
                  {"model", "latentwire reader " + latent_keys(config).reader.kind}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

}  // namespace fullbore::latentwire

#include "workloads/chess/chess_task.h"

#include <fmt/format.h>

#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"
#include "workloads/chess/chess_data.h"
#include "workloads/chess/chess_keys.h"
#include "workloads/chess/policy_batches.h"
#include "workloads/chess/policy_step.h"
#include "workloads/chess/record_batches.h"

namespace fullbore::chess {
namespace {

std::shared_ptr<const ChessData> data_of(const TextData& text) {
  return std::static_pointer_cast<const ChessData>(text.own);
}

/// The end token is a row of the model's table, where the tokenizer has none.
void check_vocabulary(const Config& config, const ChessTokens& tokens) {
  const int64_t rows = text_keys(config).model.vocabulary;
  if (rows > 0 && rows < tokens.vocabulary())
    throw UsageError(
        fmt::format("model.vocabulary is {}, and records have {} tokens, their end among them",
                    rows, tokens.vocabulary()));
}

/// Records are made or read one by one: there is no text whose characters a vocabulary could be of.
void check_tokenizer(const std::string& name) {
  if (name == "character" || name == "compact" || name == "recorded")
    throw UsageError(fmt::format(
        "data.tokenizer is '{}', whose vocabulary is learned from a text; chess records "
        "take byte, bpe:<folder> or ranks:<family>:<file>",
        name));
}

TextData chess_text(const Config& config) {
  check_tokenizer(text_keys(config).data.tokenizer);
  TextData text;
  text.path = config.data.path;
  text.tokenizer = make_tokenizer(text_keys(config).data.tokenizer, {});
  check_vocabulary(config, ChessTokens(text.tokenizer));
  const std::shared_ptr<const ChessData> data = open_chess_data(config, text.tokenizer);
  text.identity = data->identity;
  text.own = data;
  return text;
}

std::vector<std::vector<BatchField>> record_shapes(const Config& config) {
  return RecordBatches::shapes_of(config.train.batch_size, chess_lengths(config));
}

RecordBatchOptions batch_options(const Config& config) {
  return {.rows = config.train.batch_size,
          .lengths = chess_lengths(config),
          .prompt_loss = chess_keys(config).chess.prompt_loss,
          .seed = static_cast<uint64_t>(config.run.seed)};
}

std::shared_ptr<const BatchSource> training_records(const Config& config, const TextData& text) {
  const std::shared_ptr<const ChessData> data = data_of(text);
  return std::make_shared<RecordBatches>(data, data->training, batch_options(config));
}

ValidationSet held_out_records(const Config& config, const TextData& text, int64_t most_batches) {
  const std::shared_ptr<const ChessData> data = data_of(text);
  RecordBatchOptions options = batch_options(config);
  options.shuffled = false;
  const auto source = std::make_shared<RecordBatches>(data, data->held_out, options);
  const uint64_t all = source->batches();
  return {source, most_batches > 0 ? std::min(all, static_cast<uint64_t>(most_batches)) : all};
}

LossFunction record_loss(const Config& config, int64_t tokens) {
  return text_model(config).loss(config, tokens);
}

LossFunction grpo_loss(const Config& config, int64_t tokens) {
  const ChessTokens own(make_tokenizer(text_keys(config).data.tokenizer, {}));
  return policy_step_loss(config, policy_hidden(config, tokens), own.vocabulary());
}

std::shared_ptr<BatchMaker> policy_batches(const Config& config, const TextData& text) {
  const int64_t tokens = text.tokenizer->vocabulary_size();
  return std::make_shared<PolicyBatches>(config, data_of(text),
                                         PolicyModel{.decode = model_paged_decode(config, tokens),
                                                     .hidden = policy_hidden(config, tokens)});
}

/// What generates, and what the reference says: of the largest batch.
std::vector<Graph> rollout_graphs(const Config& config, int64_t tokens) {
  const ChessTokens own(make_tokenizer(text_keys(config).data.tokenizer, {}));
  std::vector<Graph> graphs = {Rollout::trace(model_paged_decode(config, tokens),
                                              policy_rollout_sizes(config, own.vocabulary()))};
  if (policy_options(config).has_reference)
    graphs.push_back(policy_scoring(policy_hidden(config, tokens), policy_shapes(config).back(),
                                    own.vocabulary(), true));
  return graphs;
}

std::string policy_figure(const std::string& name, double value) {
  if (name == "reward") return fmt::format("reward {:.3f}", value);
  if (name == "policy/legal_best") return fmt::format("legal {:.1f} %", 100 * value);
  if (name == "arbiter/exact") return fmt::format("exact {:.1f} %", 100 * value);
  if (name == "kl") return fmt::format("kl {:.3f}", value);
  return "";
}

QualityMetrics record_quality(const Config&) {
  return {{.name = "loss", .unit = "nats", .margin = 0.05, .source = "as losses of texts"}};
}

/// By its own draws, for nothing is held out. The specification lets the control, which learns nothing, rise by 0.03: what
/// is less cannot be told from nothing.
QualityMetrics policy_quality(const Config&) {
  return {{.name = "reward",
           .better = Better::higher,
           .margin = 0.03,
           .source = "specification of chess-grpo, section 9: what a control may rise by",
           .is_of_training = true}};
}

}  // namespace

TextTask chess_task() {
  return {.name = kChessBatching,
          .data = chess_text,
          .shapes = record_shapes,
          .training = training_records,
          .held_out = held_out_records,
          .about = about_chess_data,
          .loss = record_loss,
          .figure = [](const std::string&, double) { return std::string(); },
          .measured_by = "chess eval",
          .reads_path = true,
          .takes_buckets = true,
          .quality = record_quality};
}

TextTask grpo_task() {
  return {.name = kGrpoBatching,
          .data = chess_text,
          .shapes = policy_shapes,
          .training = {},
          .held_out = {},
          .about = about_chess_data,
          .loss = grpo_loss,
          .figure = policy_figure,
          .measured_by = "chess eval",
          .reads_path = true,
          .takes_buckets = true,
          .maker = policy_batches,
          .beside = rollout_graphs,
          .sample = "completions",
          .samples_per_row = [](const Config& config) { return policy_layout(config).completions; },
          .quality = policy_quality};
}

}  // namespace fullbore::chess

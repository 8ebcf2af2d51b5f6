#include "apps/language_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "apps/language_model.h"
#include "fullbore/base/hash.h"
#include "workloads/language/huggingface_gpt2.h"

namespace fullbore {
namespace {

// The names that the two models give their tables.
std::string token_table(const Config& config) {
  return config.model.name == "hybrid" ? "embed.weight" : "token_embedding.weight";
}
constexpr const char* kPositions = "position_embedding.weight";
constexpr const char* kHead = "head.weight";

bool has_own_head(const Config& config) {
  return config.model.name == "gpt" && !config.model.tie_head;
}

/// What a token stands for; "" of one that stands for nothing. Special tokens are not the text that they are
/// written as.
std::vector<std::string> token_texts(const Tokenizer& tokenizer) {
  std::vector<std::string> texts(static_cast<size_t>(tokenizer.vocabulary_size()));
  for (size_t id = 0; id < texts.size(); ++id)
    tokenizer.append_bytes(static_cast<int32_t>(id), texts[id]);
  for (const SpecialToken& special : tokenizer.special_tokens())
    texts[static_cast<size_t>(special.id)] = std::string(1, '\0') + special.text;
  return texts;
}

/// For each of `count` rows of tokens here the row there, or -1.
std::vector<int64_t> rows_by_token(const Tokenizer& here, const Tokenizer& there, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count), -1);
  if (here.hash() == there.hash()) {
    std::iota(rows.begin(), rows.begin() + here.vocabulary_size(), int64_t{0});
    return rows;
  }
  std::map<std::string, int64_t> known;
  const std::vector<std::string> theirs = token_texts(there);
  for (size_t id = 0; id < theirs.size(); ++id)
    if (!theirs[id].empty()) known.emplace(theirs[id], static_cast<int64_t>(id));
  const std::vector<std::string> ours = token_texts(here);
  for (size_t id = 0; id < ours.size(); ++id)
    if (const auto found = known.find(ours[id]); found != known.end()) rows[id] = found->second;
  return rows;
}

int64_t rows_of(const WeightSource& source, const std::string& parameter) {
  const TensorType* const type = source.find(parameter);
  return type == nullptr || type->shape.rank() == 0 ? 0 : type->shape[0];
}

}  // namespace

std::vector<std::string> language_weight_keys(const Config& config) {
  // Heads of the hybrid are seen by the shapes of their parameters; those of attention are not.
  if (config.model.name == "gpt") return {"model.heads", "model.activation"};
  return {"model.heads", "model.mamba_heads", "model.states"};
}

std::vector<TableOrigins> language_weight_tables(const Config& config, const Tokenizer& tokenizer,
                                                 const WeightSource& source) {
  if (source.config().model.name == "peptide") return {};
  const std::shared_ptr<const Tokenizer> theirs =
      parse_tokenizer(source.record().tokenizer, source.path()).take_or_throw();
  const int64_t table = table_rows(config, tokenizer.vocabulary_size());
  std::vector<TableOrigins> origins;
  const std::string their_table = token_table(source.config());
  // Tables of the same tokens are taken whole, rows beyond them included.
  if (tokenizer.hash() != theirs->hash() || table != rows_of(source, their_table)) {
    const std::vector<int64_t> rows = rows_by_token(tokenizer, *theirs, table);
    if (std::ranges::any_of(rows, [](int64_t row) { return row >= 0; })) {
      origins.push_back({token_table(config), their_table, rows});
      if (has_own_head(config))
        origins.push_back({kHead, has_own_head(source.config()) ? kHead : their_table, rows});
    }
  } else if (has_own_head(config) && !has_own_head(source.config())) {
    std::vector<int64_t> rows(static_cast<size_t>(table));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    origins.push_back({kHead, their_table, rows});
  }
  const int64_t positions = rows_of(source, kPositions);
  const int64_t context = config.model.context;
  if (config.model.name == "gpt" && positions > 0 &&
      (context < positions || (context > positions && config.model.initialize_partial))) {
    std::vector<int64_t> rows(static_cast<size_t>(context), -1);
    std::iota(rows.begin(), rows.begin() + std::min(context, positions), int64_t{0});
    origins.push_back({kPositions, kPositions, rows});
  }
  return origins;
}

InitialWeights huggingface_weights(const Config& config, const Tokenizer& tokenizer) {
  const std::string& folder = config.model.initialize_from;
  if (config.model.name != "gpt")
    throw UsageError(fmt::format(
        "model.initialize_from: {} is neither a run nor a checkpoint, and no other layout is read "
        "for model.name={}",
        folder, config.model.name));
  const LanguageModelConfig model = model_config(config, tokenizer.vocabulary_size());
  const auto source = std::make_shared<const HuggingFaceGpt2>(HuggingFaceGpt2::open(folder));
  source->check(model);
  InitialWeights weights;
  std::vector<std::string> renamed;
  for (const auto& [ours, theirs] : source->renamed(model))
    renamed.push_back(fmt::format("{} -> {}", theirs, ours));
  weights.lines = {
      fmt::format("weights  {} (GPT-2 in the Hugging Face layout): {} tensors taken, all renamed",
                  folder, renamed.size())};
  for (std::string& line : listed_lines("renamed", renamed))
    weights.lines.push_back(std::move(line));
  weights.fill = [source, model](State& state) { source->fill(model, state); };
  return weights;
}

}  // namespace fullbore

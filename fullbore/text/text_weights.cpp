#include "fullbore/text/text_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "fullbore/base/hash.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"

namespace fullbore {
namespace {

// The parameter that is an output head of its own; "": the token table is.
std::string own_head(const Config& config) {
  const auto& head = text_model(config).head;
  return head ? head(config) : "";
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

std::vector<TableOrigins> text_weight_tables(const Config& config, const Tokenizer& tokenizer,
                                             const WeightSource& source) {
  if (!is_text_model(source.config())) return {};
  const std::shared_ptr<const Tokenizer> theirs =
      parse_tokenizer(source.record().tokenizer, source.path()).take_or_throw();
  const int64_t table = table_rows(config, tokenizer.vocabulary_size());
  std::vector<TableOrigins> origins;
  const std::string our_table = text_model(config).token_table;
  const std::string their_table = text_model(source.config()).token_table;
  const std::string our_head = own_head(config), their_head = own_head(source.config());
  // Tables of the same tokens are taken whole, rows beyond them included.
  if (tokenizer.hash() != theirs->hash() || table != rows_of(source, their_table)) {
    const std::vector<int64_t> rows = rows_by_token(tokenizer, *theirs, table);
    if (std::ranges::any_of(rows, [](int64_t row) { return row >= 0; })) {
      origins.push_back({our_table, their_table, rows});
      if (!our_head.empty())
        origins.push_back({our_head, their_head.empty() ? their_table : their_head, rows});
    }
  } else if (!our_head.empty() && their_head.empty()) {
    std::vector<int64_t> rows(static_cast<size_t>(table));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    origins.push_back({our_head, their_table, rows});
  }
  const std::string& positions_table = text_model(config).position_table;
  const int64_t positions = positions_table.empty() ? 0 : rows_of(source, positions_table);
  const int64_t context = text_keys(config).model.context;
  if (positions > 0 &&
      (context < positions || (context > positions && config.model.initialize_partial))) {
    std::vector<int64_t> rows(static_cast<size_t>(context), -1);
    std::iota(rows.begin(), rows.begin() + std::min(context, positions), int64_t{0});
    origins.push_back({positions_table, positions_table, rows});
  }
  return origins;
}

InitialWeights foreign_text_weights(const Config& config, const Tokenizer& tokenizer) {
  const TextModel& model = text_model(config);
  if (config.model.initialize_from.ends_with(".gguf") && !model.file_layouts.empty())
    return model.file_layouts.front().read(config, tokenizer);
  const std::optional<ForeignLayout>& layout = model.layout;
  if (!layout)
    throw UsageError(fmt::format(
        "model.initialize_from: {} is neither a run nor a checkpoint, and no other layout is read "
        "for model.name={}",
        config.model.initialize_from, config.model.name));
  return layout->read(config, tokenizer);
}

}  // namespace fullbore

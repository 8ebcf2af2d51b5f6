#include "fullbore/text/text_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "fullbore/base/error.h"
#include "fullbore/text/context_curriculum.h"
#include "fullbore/text/text_commands.h"
#include "fullbore/text/text_model.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

constexpr ConfigRange kNotNegative{.low = 0, .high = 1e15};
constexpr ConfigRange kLength{.low = 1, .high = 1048576};
constexpr ConfigRange kInterval{.low = 0, .high = 1e9};

#define FB_KEY(section, member) \
#section "." #member,         \
      [](Config & config) -> ConfigPlace { return &text_keys(config).section.member; }

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(data, field), {}, {}, "of each line of *.jsonl files: the one that holds the text"},

      {FB_KEY(data, tokenizer),
       {},
       {},
       "character (or compact), recorded, byte, bpe:<folder or tokenizer.json>, "
       "ranks:<family>:<file>"},

      {FB_KEY(data, split),
       {},
       {"fraction", "document", "file", "sequences"},
       "what the held-out part's boundary must not divide; fraction: nothing; or the end of "
       "each sequence"},

      {FB_KEY(data, batching),
       {},
       {"windows", "packed", "buckets", "sequences"},
       "stretches of text; documents kept apart in rows, or of like length; sequences that "
       "go on; or made up"},
      {FB_KEY(data, buckets),
       kLength,
       {},
       "lengths of batches, ascending; longer documents are cut; []: 1/4, 1/2, all of "
       "model.context"},

      {FB_KEY(data, context_curriculum),
       {},
       {},
       "{until_step, length} each: tokens of sequences up to that step, then model.context",
       true,
       false,
       {},
       "[{until_step: 500, length: 16}, {until_step: 1000, length: 32}]"},
      {FB_KEY(data, tokens_per_batch),
       kInterval,
       {},
       "of buckets, padding included; 0: train.batch_size times model.context"},
      {FB_KEY(model, layers), {1, 1000}, {}, "blocks, one after the other"},
      {FB_KEY(model, heads),
       {1, 1024},
       {},
       "heads of each block, of attention or of RWKV; divides model.width"},
      {FB_KEY(model, width), {1, 65536}, {}, "channels of the residual stream"},
      {FB_KEY(model, context), kLength, {}, "tokens seen at once, at most"},
      {FB_KEY(model, vocabulary), {0, 1e9}, {}, "rows of the token table; 0: as many as tokens"},

      {FB_KEY(train, z_loss),
       kNotNegative,
       {},
       "factor of log^2 of the softmax's normaliser, added while training; PaLM has 1e-4"},
      {FB_KEY(train, sample_characters), {0, 1e6}, {}, "length of the sample shown at the end"},

      {FB_KEY(engine, fused_head),
       {},
       {"auto", "on", "off"},
       "output head and loss in one, logits a block of rows at a time; auto: where they are "
       "large"}};
  for (ConfigField& field : fields) field.models = text_model_names();
  mark(fields, &ConfigField::is_size,
       {"model.layers", "model.width", "model.context", "model.vocabulary",
        "data.tokens_per_batch"});
  mark(fields, &ConfigField::is_taken,
       {"data.field", "data.context_curriculum", "engine.fused_head"});
  mark(fields, &ConfigField::names_file, {"data.tokenizer"});
  return fields;
}

#undef FB_KEY

void check(const ConfigCheck& check) {
  const Config& config = check.config();
  if (!is_text_model(config)) return;
  const TextKeys::Model& model = text_keys(config).model;
  check.together(model.width % model.heads == 0, "model.width", "is not a multiple of",
                 "model.heads");
  const TextKeys::Data& data = text_keys(config).data;
  const TextTask* const task = text_task(config);
  const bool buckets = data.batching == "buckets" || (task != nullptr && task->takes_buckets);
  check.together(buckets || data.buckets.empty(), "data.buckets", "means nothing with",
                 "data.batching");
  check.together(data.batching == "buckets" || data.tokens_per_batch == 0, "data.tokens_per_batch",
                 "means nothing with", "data.batching");
  if (data.tokens_per_batch > 0 && config.train.batch_size == 0)
    throw UsageError(fmt::format(
        "config: {} cannot be solved, for {} settles how large a batch is: set "
        "data.tokens_per_batch=0 to have the batch solved, or leave train.batch_size out",
        check.with_origin("train.batch_size"), check.with_origin("data.tokens_per_batch")));
  check.together(data.split != "sequences" || data.batching == "sequences", "data.split",
                 "is of batches of sequences, not of", "data.batching");
  check.together(task == nullptr || task->reads_path || config.data.path.empty(), "data.path",
                 "means nothing with", "data.batching");
  check.together(
      data.context_curriculum.empty() || data.batching == "windows" || data.batching == "sequences",
      "data.context_curriculum", "means nothing with", "data.batching");
  try {
    context_stages(config);
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("config: {}: {}", check.origin("data.context_curriculum"), error.what()));
  }
  check.together(data.batching == "windows" || !config.optim.noise_scale, "optim.noise_scale",
                 "needs halves of a batch that count alike, not", "data.batching");
  if (!std::ranges::is_sorted(data.buckets, std::less_equal<>()))
    throw UsageError(
        fmt::format("config: {} are not ascending", check.with_origin("data.buckets")));
  const int64_t longest = data.buckets.empty() ? model.context : data.buckets.back();
  check.together(longest <= model.context, "data.buckets", "go beyond", "model.context");
  check.together(data.tokens_per_batch == 0 || data.tokens_per_batch >= longest,
                 "data.tokens_per_batch", "is less than the longest sequence, of",
                 data.buckets.empty() ? "model.context" : "data.buckets");
}

void set_absolute_paths(Config& config) {
  std::string& name = text_keys(config).data.tokenizer;
  const size_t path = tokenizer_path(name);
  if (path < name.size())
    name = name.substr(0, path) + std::filesystem::absolute(name.substr(path)).string();
}

/// Where it is the configuration's to decide: head and loss in one take less memory.
std::vector<LighterConfig> lighter(const Config& config) {
  if (text_keys(config).engine.fused_head != "auto") return {};
  LighterConfig changed{"engine.fused_head=on", config};
  text_keys(changed.config).engine.fused_head = "on";
  return {changed};
}

// Tokens settle the batch, not its number of rows.
bool settles_rows(const Config& config) { return text_keys(config).data.tokens_per_batch > 0; }

const WorkloadRegistrar kText{{.name = "text",
                               .keys = {.is_common = true,
                                        .fields = fields,
                                        .retired_words = {{"data.batching", "tracks", "sequences"},
                                                          {"data.split", "tracks", "sequences"}},
                                        .check = check,
                                        .lighter = lighter,
                                        .settles_rows = settles_rows},
                               .add_commands = add_text_commands,
                               .add_eval = add_text_eval,
                               .set_absolute_paths = set_absolute_paths}};

}  // namespace
}  // namespace fullbore

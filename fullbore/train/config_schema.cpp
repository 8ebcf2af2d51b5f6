#include "fullbore/train/config_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/check.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/device/registry.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

std::vector<std::string> names_of_devices() {
  std::vector<std::string> names = device_names();
  names.insert(names.begin(), kAutomatic);
  return names;
}

// Products of two such factors are finite f32 numbers, and so is the inverse of what is divided by.
constexpr ConfigRange kNotNegative{.low = 0, .high = 1e15};
constexpr ConfigRange kPositive{.low = 1e-30, .high = 1e15};
constexpr ConfigRange kFraction{.low = 0, .high = 1, .high_open = true};
// Bounds of counts keep products of them within 64 bits, and a slip of the keyboard from the planner.
constexpr ConfigRange kSteps{.low = 1, .high = 1e9};
constexpr ConfigRange kInterval{.low = 0, .high = 1e9};
constexpr ConfigRange kRestores{.low = 0, .high = 1000};

#define FB_KEY(section, member) \
#section "." #member, [](Config & config) -> ConfigPlace { return &config.section.member; }

std::vector<std::string> all_models();

std::vector<ConfigField> common_fields() {
  return {
      {FB_KEY(run, dir),
       {},
       {},
       "folder of the run: metrics, log, checkpoints, summary; empty: runs/<name>-<number>, a new "
       "one"},
      {FB_KEY(run, name), {}, {}, "a label for people, kept in the run's records"},
      {FB_KEY(run, seed), {0, 9007199254740992}, {}, "of initial values, batches and dropout"},

      {FB_KEY(data, path),
       {},
       {},
       "UTF-8 text to learn from: a file, a folder, a pattern, - for standard input; or token "
       "shards"},
      {FB_KEY(data, cache_dir), {}, {}, "folder for token caches; empty: the user's cache folder"},
      {FB_KEY(data, validation_fraction),
       kFraction,
       {},
       "share of the text, at its end, that is held out; 0: no validation"},
      {FB_KEY(data, workers),
       {0, 256},
       {},
       "threads that prepare batches, 0: the training thread; no effect on the result"},
      {FB_KEY(data, prefetch), {1, 1024}, {}, "batches kept ready; no effect on the result"},

      {FB_KEY(model, name), {}, all_models(), "the architecture; which other keys there are"},
      {FB_KEY(model, dropout), kFraction, {}, "share of activations dropped while training"},
      {FB_KEY(model, initialize_from),
       {},
       {},
       "run, checkpoint, exported folder, safetensors file or mapping (YAML) to start from; empty: "
       "none"},
      {FB_KEY(model, initialize_partial),
       {},
       {},
       "take the weights that fit and start the others at random; false: all must fit"},

      {FB_KEY(optim, name),
       {},
       optimizer_names(),
       "the optimiser; muon: of matrices, adamw's rest"},
      {FB_KEY(optim, learning_rate), kNotNegative, {}, "its peak, reached after the warm-up"},
      {FB_KEY(optim, minimum_learning_rate), kNotNegative, {}, "where the schedule ends"},
      {FB_KEY(optim, warmup_steps), kInterval, {}, "steps over which the rate rises linearly"},
      {FB_KEY(optim, warmup_from_zero), {}, {}, "the first step of the warm-up has the rate 0"},
      {FB_KEY(optim, schedule), {}, schedule_names(), "the rate after the warm-up"},
      {FB_KEY(optim, decay_fraction),
       {0, 1},
       {},
       "share of the steps, at their end, in which warmup_stable_decay falls"},
      {FB_KEY(optim, plateau_factor),
       {0, 1},
       {},
       "the rate of schedule plateau is multiplied by it where the loss falls no more"},
      {FB_KEY(optim, plateau_patience),
       kInterval,
       {},
       "intervals in a row without a better mean loss that schedule plateau bears"},
      {FB_KEY(optim, plateau_interval),
       kSteps,
       {},
       "steps whose mean training loss schedule plateau compares: an epoch, say"},
      {FB_KEY(optim, beta1), kFraction, {}, "decay of the gradient's moving average"},
      {FB_KEY(optim, beta2), kFraction, {}, "decay of the squared gradient's moving average"},
      {FB_KEY(optim, epsilon), kPositive, {}, "added to the root of the second moment"},
      {FB_KEY(optim, momentum), kFraction, {}, "of sgd and muon; 0: none"},
      {FB_KEY(optim, nesterov), {}, {}, "sgd and muon look one step ahead"},
      {FB_KEY(optim, weight_decay), kNotNegative, {}, "decoupled (sgd: L2); see decay_policy"},
      {FB_KEY(optim, decay_policy),
       {},
       {"matrices", "all"},
       "what decays: matrices and tables, or vectors and scalars too"},
      {FB_KEY(optim, clip_norm), kNotNegative, {}, "largest global gradient norm; 0: no clipping"},
      {FB_KEY(optim, clip_value), kNotNegative, {}, "largest gradient element; 0: no clipping"},
      {FB_KEY(optim, groups),
       {},
       {},
       "{match: PATTERN, weight_decay, learning_rate_multiplier, algorithm}; the first match "
       "counts",
       true,
       false,
       {},
       "[{match: *.bias, weight_decay: 0}, {match: head.*, learning_rate_multiplier: 0.5}]"},
      {FB_KEY(optim, ema_decay),
       kFraction,
       {},
       "of the moving average of the weights; 0: none is kept"},
      {FB_KEY(optim, ema_warmup),
       {},
       {},
       "the moving average's decay rises to ema_decay over the first steps, as (1 + t) / (10 + t)"},
      {FB_KEY(optim, noise_scale), {}, {}, "measure the gradient noise scale, from half batches"},
      {FB_KEY(optim, norms),
       {},
       {"off", "groups", "parameters"},
       "gradient and parameter norms among the metrics"},

      {FB_KEY(train, steps), kSteps, {}, "updates in all, those before a --resume included"},
      {FB_KEY(train, batch_size),
       {1, 1048576},
       {},
       "sequences per step; auto: as many as engine.memory_budget allows",
       false,
       true},
      {FB_KEY(train, label_smoothing),
       kFraction,
       {},
       "share of each target spread over all tokens while training; validation is without"},
      {FB_KEY(train, freeze),
       {},
       {},
       "parameters that are not trained and take no gradient, by patterns such as layers.0.*",
       false,
       false,
       {},
       {},
       true},
      {FB_KEY(train, frozen_from),
       {},
       {},
       "safetensors, a file or folder, to read frozen parameters from; to be named on --resume"},
      {FB_KEY(train, eval_interval),
       kInterval,
       {},
       "steps between validations; 0: at the end only"},
      {FB_KEY(train, eval_batches),
       kInterval,
       {},
       "batches of each validation; 0: the whole validation part"},
      {FB_KEY(train, evaluate),
       {},
       {"raw", "ema"},
       "weights that are validated, and that generate and eval then use"},
      {FB_KEY(train, checkpoint_interval),
       kInterval,
       {},
       "steps between checkpoints; 0: at the end only"},
      {FB_KEY(train, keep_checkpoints),
       kInterval,
       {},
       "how many of the newest checkpoints stay, besides the best; 0: all"},
      {FB_KEY(train, keep_best),
       {1, 1000},
       {},
       "how many of those that were the best when they were saved stay; links best, best-2, ..."},
      {FB_KEY(train, compress_checkpoints),
       {},
       {"none", "optimizer", "all"},
       "without loss; other programs read weights.safetensors uncompressed only"},
      {FB_KEY(train, background_saves),
       {},
       {},
       "write checkpoints while training goes on, from a second copy of the State in memory"},
      {FB_KEY(train, early_stopping),
       kInterval,
       {},
       "stop after so many validations in a row without a new best; 0: never"},
      {FB_KEY(train, max_skipped_steps),
       kSteps,
       {},
       "stop after so many steps in a row whose loss or gradients were not finite"},
      {FB_KEY(train, max_restores),
       kRestores,
       {},
       "instead, so often, go back to the last checkpoint at half the learning rate"},

      {FB_KEY(engine, device),
       {},
       names_of_devices(),
       "what runs the programs; auto: an NVIDIA card if one can be used, else the processor"},
      {FB_KEY(engine, precision),
       {},
       {"fp32", "tf32", "bf16", "fp16"},
       "of matmuls' operands and (bf16, fp16) stored values; weights, sums, losses stay fp32"},
      {FB_KEY(engine, fp32_modules),
       {},
       {},
       "modules that stay fp32 even so, by patterns such as layers.0.*"},
      {FB_KEY(engine, accumulate),
       {1, 65536},
       {},
       "equal parts in which a batch goes through the model, for less memory; auto: as few as fit",
       false,
       true},
      {FB_KEY(engine, parallel_microbatches),
       {1, 1024},
       {},
       "equal microbatches side by side, each by a group of threads; auto: 4, 2 or 1 by job and "
       "budget",
       false,
       true},
      {FB_KEY(engine, loss_scale),
       {1, 16777216},
       {},
       "of fp16: what the loss is multiplied by at first, so that small gradients are not lost"},
      {FB_KEY(engine, loss_scale_growth),
       {1, 65536},
       {},
       "of fp16: the scale's factor after loss_scale_interval finite steps in a row"},
      {FB_KEY(engine, loss_scale_backoff),
       {1e-6, 1},
       {},
       "of fp16: the scale's factor after a step that was not finite, and was skipped"},
      {FB_KEY(engine, loss_scale_interval), kSteps, {}, "of fp16: see loss_scale_growth"},
      {FB_KEY(engine, threads), {0, 1024}, {}, "threads of a step; 0: all processors there are"},
      {FB_KEY(engine, processor),
       {},
       processor_names(),
       "highest instructions that are used; auto: all that the machine has"},
      {FB_KEY(engine, attention),
       {},
       {"tiled", "decomposed"},
       "kernels of its own without a matrix of queries by keys; or matmuls and a softmax"},
      {FB_KEY(engine, row_invariant),
       {},
       {},
       "a row's bits depend on no other row and no step's length, at some cost; fp32, tiled "
       "attention"},
      {FB_KEY(engine, cublaslt),
       {},
       {},
       "matmuls of a card by NVIDIA's cuBLASLt where it is found; bits then depend on its version"},
      {FB_KEY(engine, compile),
       {},
       {"full", "fast", "off"},
       "all there is; what is soon made, for slower steps; or each op by its reference, for "
       "debugging"},
      {FB_KEY(engine, recompute),
       {},
       {"off", "auto", "full"},
       "make activations again for the gradient: never, to fit memory_budget, wherever it saves "
       "memory"},
      {FB_KEY(engine, memory_budget),
       {},
       {},
       "memory of the whole process: bytes as in 6GiB, or a share as in 0.5; empty: nine tenths "
       "of all"},
      {FB_KEY(engine, degrade),
       {},
       {"recompute", "accumulate"},
       "what to change, in order, where a run is over its budget; []: it is refused"},
      {FB_KEY(engine, disabled_passes), {}, {}, "names of `fullbore passes` to leave out"},
      {FB_KEY(engine, cache), {}, {}, "keep compiled plans and kernels for the next start"},
      {FB_KEY(engine, cache_dir),
       {},
       {},
       "folder for compiled plans and kernels; empty: the user's cache folder"},

      {FB_KEY(log, interval), kSteps, {}, "steps between lines of metrics"},
      {FB_KEY(log, level), {}, {"debug", "info", "warn"}, "what the log file holds, at least"},
      {FB_KEY(log, detail),
       {},
       {"off", "info", "debug-training", "debug-performance"},
       "what is told of steps; debug-*: all metrics in the log's lines, then where time and memory "
       "go"},
      {FB_KEY(log, metrics),
       {},
       {"loss", "standard", "all"},
       "what a step measures; standard: loss, gradient norm, learning rate; the rest costs "
       "nothing"},
      {FB_KEY(log, tensorboard), {}, {}, "write event files for TensorBoard, in tensorboard/"},
      {FB_KEY(log, prometheus_port),
       {0, 65535},
       {},
       "serve metrics to Prometheus on this port of 127.0.0.1; 0: no"}};
}

#undef FB_KEY

std::vector<std::string> all_models() {
  std::vector<std::string> models;
  for (const ConfigKeys& keys : registered_config_keys())
    models.insert(models.end(), keys.models.begin(), keys.models.end());
  std::ranges::sort(models);
  return models;
}

/// What others have registered to be chosen there.
void add_choices(std::vector<ConfigField>& fields, const ConfigKeys& keys) {
  for (const auto& [key, choices] : keys.choices) {
    const auto field = std::ranges::find(fields, key, &ConfigField::key);
    FB_CHECK(field != fields.end(), "'{}' adds choices of '{}', which is no key", keys.name, key);
    field->choices.insert(field->choices.end(), choices.begin(), choices.end());
  }
}

// In each section, keys that all models have before those of some; sections of others behind them.
std::vector<ConfigField> make_fields() {
  std::vector<ConfigField> fields = common_fields();
  mark(fields, &ConfigField::is_size, {"train.batch_size", "data.prefetch"});
  mark(fields, &ConfigField::is_place, {"engine.device", "engine.processor", "engine.cache"});
  // Texts of their own: a view of a field's key would move with the field while they are sorted.
  std::vector<std::string> order = {"run",   "data",  "model",  "loss",
                                    "optim", "train", "engine", "log"};
  for (const ConfigKeys& keys : registered_config_keys())
    if (keys.fields)
      for (ConfigField& field : keys.fields()) fields.push_back(std::move(field));
  for (const ConfigKeys& keys : registered_config_keys()) add_choices(fields, keys);
  for (const ConfigField& field : fields)
    if (std::ranges::find(order, field.section()) == order.end())
      order.emplace_back(field.section());
  std::ranges::stable_sort(fields, {}, [&](const ConfigField& field) {
    return std::ranges::find(order, field.section()) - order.begin();
  });
  return fields;
}

}  // namespace

bool ConfigRange::contains(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high) &&
         value - value == 0;  // neither NaN nor infinite
}

std::string ConfigRange::text() const {
  const auto bound = [](double value) {
    const bool whole = std::abs(value) < 1e12 && value == std::floor(value);
    return whole ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
  };
  return fmt::format("in {}{}, {}{}", low_open ? '(' : '[', bound(low), bound(high),
                     high_open ? ')' : ']');
}

std::string_view ConfigField::section() const {
  return std::string_view(key).substr(0, key.find('.'));
}
std::string_view ConfigField::name() const {
  return std::string_view(key).substr(key.find('.') + 1);
}

void mark(std::vector<ConfigField>& fields, bool ConfigField::*trait,
          const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) {
    const auto field = std::ranges::find(fields, key, &ConfigField::key);
    FB_CHECK(field != fields.end(), "'{}' is no key", key);
    (*field).*trait = true;
  }
}

bool ConfigField::is_for(const Config& config) const {
  return models.empty() || std::ranges::find(models, config.model.name) != models.end();
}

bool ConfigField::is_list() const {
  Config config;
  const ConfigPlace type = place(config);
  return std::holds_alternative<std::vector<std::string>*>(type) ||
         std::holds_alternative<std::vector<int64_t>*>(type);
}

std::string ConfigField::expectation() const {
  Config config;
  const ConfigPlace type = place(config);
  if (std::holds_alternative<int64_t*>(type))
    return fmt::format("a whole number {}{}", range.text(), automatic ? ", or auto" : "");
  if (std::holds_alternative<double*>(type)) return "a number " + range.text();
  if (std::holds_alternative<bool*>(type)) return "true or false";
  if (std::holds_alternative<std::vector<std::string>*>(type))
    return choices.empty() ? "a list such as [a, b]"
                           : fmt::format("a list of {}", fmt::join(choices, ", "));
  if (std::holds_alternative<std::vector<int64_t>*>(type))
    return "a list of whole numbers " + range.text();
  if (choices.empty()) return "a text";
  return fmt::format("{}{}", choices.size() > 1 ? "one of " : "", fmt::join(choices, ", "));
}

std::string ConfigField::restriction() const {
  return models.empty() ? "" : fmt::format("; of model.name={}", fmt::join(models, "|"));
}

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> fields = make_fields();
  return fields;
}

const ConfigField* find_config_field(std::string_view key) {
  for (const ConfigField& field : config_fields())
    if (field.key == key) return &field;
  return nullptr;
}

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  for (const ConfigField& field : config_fields()) keys.push_back(field.key);
  return keys;
}

std::vector<std::string> config_sections() {
  std::vector<std::string> sections;
  for (const ConfigField& field : config_fields())
    if (sections.empty() || sections.back() != field.section())
      sections.emplace_back(field.section());
  return sections;
}

}  // namespace fullbore

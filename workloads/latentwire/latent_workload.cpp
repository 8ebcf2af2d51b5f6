#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "fullbore/app/job_options.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/latent_command.h"
#include "workloads/latentwire/latent_eval.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/latent_prompts.h"
#include "workloads/latentwire/reader_model.h"
#include "workloads/latentwire/receiver_rows.h"
#include "workloads/latentwire/receiver_weights.h"
#include "workloads/latentwire/switch_check.h"
#include "workloads/latentwire/teacher_cache.h"

namespace fullbore::latentwire {
namespace {

using Receivers = std::vector<Receiver>;

/// A configuration, and what was made of the switches in it that were to be checked.
struct SettledSwitches {
  Config asked, config;
  std::vector<std::string> lines;
};

/// Prompts and receivers of a job.
struct LatentData {
  LatentPrompts prompts;
  std::shared_ptr<const Receivers> receivers;
  std::shared_ptr<const TextEncoder> encoder;   ///< null: bytes are read
  std::shared_ptr<const FrozenWeights> frozen;  ///< of receivers and encoder
  /// Those found, by max_bytes, max_answer_tokens and whether a text is read.
  using Extents = std::map<std::tuple<int64_t, int64_t, bool>, PromptExtents>;
  std::shared_ptr<Extents> extents = std::make_shared<Extents>();
  /// Shapes of training batches, by those, the rows of a batch, whether these are grouped, and have a teacher from files.
  using Buckets =
      std::map<std::tuple<int64_t, int64_t, bool, int64_t, bool, bool>, std::vector<PromptExtents>>;
  std::shared_ptr<Buckets> buckets = std::make_shared<Buckets>();
  std::shared_ptr<std::vector<SettledSwitches>> settled =
      std::make_shared<std::vector<SettledSwitches>>();
};

LatentData open_data(const Config& config) {
  if (caches_teacher(config) && config.data.path.empty())
    throw UsageError(fmt::format(
        "loss.teacher_cache={}: the attribute corpus has no end, and a run reads no row of it "
        "twice; off is for it, and data.path names questions that come again each epoch",
        latent_keys(config).loss.teacher_cache));
  auto receivers = std::make_shared<const Receivers>(open_receivers(config));
  const std::shared_ptr<const TextEncoder> encoder = open_text_encoder(config);
  return {open_prompts(config), receivers, encoder, weights_in_place(*receivers, encoder.get())};
}

// A file of questions is looked at once for each form of batches.
PromptExtents text_extents(const Config& config, const LatentData& data) {
  const LatentKeys& keys = latent_keys(config);
  const std::tuple form{data.encoder ? keys.wire.max_tokens : keys.wire.max_bytes,
                        keys.receivers.max_answer_tokens, reads_text(config)};
  const auto found = data.extents->find(form);
  if (found != data.extents->end()) return found->second;
  PromptExtents extents;
  for (const auto& source : {data.prompts.training, data.prompts.validation})
    if (source)
      extents =
          larger(extents, prompt_extents(*source, *data.receivers, std::get<0>(form),
                                         std::get<1>(form), std::get<2>(form), data.encoder.get()));
  return data.extents->emplace(form, extents).first->second;
}

PromptExtents extents_of(const Config& config, const LatentData& data) {
  PromptExtents extents = text_extents(config, data);
  if (!caches_teacher(config)) return extents;
  for (const int64_t answer : extents.answers) {
    const TeacherForm kept = teacher_form(config, answer);
    extents.teacher.push_back({kept.states(), kept.places});
  }
  return extents;
}

constexpr int64_t kGroupedBatches = 16;
// Tokens that are kept of a file's questions.
constexpr size_t kTokenCacheBytes = size_t{256} << 20;

PromptBatches::Options batch_options(const Config& config, const LatentData& data, bool trains) {
  const LatentKeys& keys = latent_keys(config);
  PromptBatches::Options options{.batch = config.train.batch_size,
                                 .extents = extents_of(config, data),
                                 .question_first = keys.wire.question_first,
                                 .encoder = data.encoder,
                                 .most_bytes = keys.wire.max_bytes};
  if (trains && latent_keys(config).data.group_by_length) options.grouped = kGroupedBatches;
  if (!trains || !data.prompts.shuffled) return options;
  options.seed = static_cast<uint64_t>(config.run.seed);
  if (keys.switches.token_cache != "off") options.cache_bytes = kTokenCacheBytes;
  return options;
}

// Shapes of training batches: of the buckets those that an eighth of the first batches have, for a step is compiled for
// each. A batch of another one goes to the next larger.
std::vector<PromptExtents> buckets_of(const Config& config, const LatentData& data) {
  constexpr uint64_t kLooked = 32, kLeast = 4;
  const PromptExtents extents = extents_of(config, data);
  const LatentKeys& keys = latent_keys(config);
  if (keys.switches.length_buckets == "off" || config.train.batch_size < 1) return {extents};
  const std::tuple form{data.encoder ? keys.wire.max_tokens : keys.wire.max_bytes,
                        keys.receivers.max_answer_tokens,
                        reads_text(config),
                        config.train.batch_size,
                        keys.data.group_by_length,
                        caches_teacher(config)};
  const auto found = data.buckets->find(form);
  if (found != data.buckets->end()) return found->second;
  PromptBatches::Options options = batch_options(config, data, true);
  options.buckets = answer_buckets(extents);
  const PromptBatches batches(data.prompts.training, data.receivers, options);
  std::vector<uint64_t> met(options.buckets.size());
  for (uint64_t position = 0; position < kLooked; ++position) ++met[batches.shape_at(position)];
  std::vector<PromptExtents> buckets;
  for (size_t i = 0; i < met.size(); ++i)
    if (met[i] >= kLeast || i + 1 == met.size()) buckets.push_back(options.buckets[i]);
  return data.buckets->emplace(form, std::move(buckets)).first->second;
}

std::shared_ptr<const BatchSource> batches(const Config& config, const LatentData& data,
                                           std::shared_ptr<const PromptSource> source,
                                           bool trains) {
  PromptBatches::Options options = batch_options(config, data, trains);
  if (trains) options.buckets = buckets_of(config, data);
  if (caches_teacher(config))
    options.teacher =
        std::make_shared<TeacherCache>(config, source, data.receivers, options.extents.answers);
  options.step = [config, trains](uint64_t position) {
    return trains ? prompt_step(config, static_cast<int64_t>(position)) : validation_step(config);
  };
  return std::make_shared<PromptBatches>(std::move(source), data.receivers, std::move(options));
}

double result_of(const StepResults& results, const std::string& name) {
  for (const auto& [known, value] : results)
    if (known == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

StepFigures figures_of(const Receivers& receivers) {
  return [&receivers](const StepResults& results, double /*validation_loss*/) {
    std::string text;
    for (const Receiver& each : receivers)
      text += fmt::format("{}{} {:.3f} a token", text.empty() ? "" : "  ", each.name,
                          result_of(results, each.name + "_all"));
    return text;
  };
}

std::string model_identity(const Config& config, const Receivers& receivers) {
  const LatentKeys& keys = latent_keys(config);
  std::string text = fmt::format(
      "latentwire slots={}+{} width={} layers={} heads={} pre_norm={} refiner={} colour={}",
      keys.wire.slots, keys.wire.own_slots, keys.wire.width, keys.wire.layers, keys.wire.heads,
      keys.wire.pre_norm, keys.wire.refiner_layers, keys.receivers.colour);
  if (keys.wire.encoder != "bytes") text += fmt::format(" encoder={}", keys.wire.encoder);
  const LatentKeys::Conditioning& more = keys.conditioning;
  text += fmt::format(" deep_prefix={} attending={} by {} coprocessor={} rank={} in {} gists={}",
                      more.deep_prefix, fmt::join(more.attending_blocks, ","), more.attending_heads,
                      more.coprocessor, more.rank, more.adapted_blocks, more.gist_tokens);
  for (const Receiver& each : receivers) text += fmt::format(" {}={}", each.name, each.kind);
  return text;
}

TrainingJob job_of(const Config& config, const LatentData& data) {
  TrainingJob job;
  job.loss = latent_loss(config, data.receivers, data.encoder);
  job.initialize = [receivers = data.receivers, encoder = data.encoder](State& state) {
    fill_receivers(*receivers, state);
    if (encoder) fill_text_encoder(*encoder, state);
  };
  job.frozen = data.frozen;
  for (const Receiver& each : *data.receivers)
    job.initialized.push_back(
        fmt::format("receiver {} {}, frozen", each.name,
                    each.folder.empty() ? "with random weights" : "from " + each.folder));
  job.training = batches(config, data, data.prompts.training, true);
  if (data.prompts.validation) {
    ValidationSet set;
    set.source = batches(config, data, data.prompts.validation, false);
    set.batches = static_cast<uint64_t>(
        std::max<int64_t>(1, data.prompts.validation->size() / config.train.batch_size));
    if (config.train.eval_batches > 0)
      set.batches = std::min(set.batches, static_cast<uint64_t>(config.train.eval_batches));
    job.validation = set;
  }
  job.figures = figures_of(*data.receivers);
  for (const Receiver& each : *data.receivers)
    job.shown.push_back({each.name + "_first_accuracy", each.name + " first right"});
  job.tokens_per_step = config.train.batch_size;
  job.sample_unit = "prompts";
  job.tokenizer = receivers_json(*data.receivers, data.encoder.get());
  job.options = training_options(config);
  job.identity = {{"data", data.prompts.training->identity()},
                  {"model", model_identity(config, *data.receivers)},
                  {"rows", row_recipe(config, *data.receivers)}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

// With every switch that is to be checked on or off: once, for commands ask for a job twice, before and after its run has a
// folder.
TrainingJob latent_training(const Config& config, const LatentData& data) {
  Config asked = config;
  asked.run.dir.clear();
  auto settled = std::ranges::find(*data.settled, asked, &SettledSwitches::asked);
  if (settled == data.settled->end()) {
    SettledSwitches found{asked, asked, {}};
    found.lines = settle_checked_switches(found.config,
                                          [&](const Config& each) { return job_of(each, data); });
    settled = data.settled->insert(settled, std::move(found));
  }
  Config used = settled->config;
  used.run.dir = config.run.dir;
  TrainingJob job = job_of(used, data);
  job.initialized.insert(job.initialized.end(), settled->lines.begin(), settled->lines.end());
  return job;
}

OpenedWorkload open_latent(const Config& config) {
  const auto data = std::make_shared<const LatentData>(open_data(config));
  OpenedWorkload workload;
  workload.frozen = data->frozen;
  workload.unit = "numbers";
  workload.sample = "prompts";
  workload.batches = data->prompts.training->about();
  workload.loss = [data](const Config& each) {
    return latent_loss(each, data->receivers, data->encoder);
  };
  workload.shapes = [data](const Config& each) {
    std::vector<std::vector<BatchField>> shapes;
    for (const PromptExtents& extents : buckets_of(each, *data))
      shapes.push_back(PromptBatches::fields_of(*data->receivers, each.train.batch_size, extents));
    return shapes;
  };
  workload.validates = [data](const Config&) { return data->prompts.validation != nullptr; };
  workload.job = [data](const Config& each) { return latent_training(each, *data); };
  workload.about = [data](const Config&) {
    std::vector<std::string> names;
    for (const Receiver& each : *data->receivers) names.push_back(each.name);
    return fmt::format("prompts  {}; receivers {}", data->prompts.training->about(),
                       fmt::join(names, ", "));
  };
  return workload;
}

OpenedWorkload open_reader(const Config&) {
  OpenedWorkload workload;
  workload.unit = "tokens";
  workload.batches = "documents of the attribute corpus";
  workload.loss = reader_loss;
  workload.shapes = [](const Config& each) {
    return std::vector<std::vector<BatchField>>{reader_fields(each)};
  };
  workload.validates = [](const Config& each) {
    return latent_keys(each).data.validation_prompts > 0;
  };
  workload.job = reader_job;
  workload.about = [](const Config& each) {
    return fmt::format("documents  the attribute corpus {}, tokens of {}", kAttributeTrainingKey,
                       reader_model(latent_keys(each).reader.kind).tokenizer->kind());
  };
  return workload;
}

OpenedWorkload open(const Config& config, Console&, const StandIn& synthetic) {
  if (synthetic.vocabulary > 0)
    throw UsageError("--vocabulary is for language models; model.name is " + config.model.name);
  return config.model.name == kReaderModel ? open_reader(config) : open_latent(config);
}

/// A reader is a language model, and is judged as those are.
QualityMetrics quality(const Config& config) {
  constexpr double kShare = 0.01, kPoint = 0.01, kNats = 0.05;
  const std::string source = "specification of latentwire, section 7: ";
  if (config.model.name == kReaderModel)
    return {{.name = "loss",
             .unit = "nats",
             .margin = kNats,
             .source = "specification of language models, section 6.2: losses within 0.05"}};
  QualityMetrics metrics = {{.name = "loss",
                             .margin = kShare,
                             .is_relative = true,
                             .source = source + "losses within 1 %"}};
  for (const std::string& each : latent_keys(config).receivers.folders)
    metrics.push_back({.name = each.substr(0, each.find('=')) + "_first_accuracy",
                       .better = Better::higher,
                       .margin = kPoint,
                       .source = source + "first tokens not lower by a point"});
  return metrics;
}

void make_absolute(Config& config) {
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  LatentKeys& keys = config.get<LatentKeys>();
  for (std::string& each : keys.receivers.folders)
    if (const size_t equals = each.find('=');
        equals != std::string::npos && !each.substr(equals + 1).starts_with(kRandomReceiver))
      each = each.substr(0, equals + 1) + absolute(each.substr(equals + 1));
  if (std::string& encoder = keys.wire.text_encoder;
      !encoder.empty() && encoder != kRandomTextEncoder)
    encoder = absolute(encoder);
}

const WorkloadRegistrar kLatentWire{{.name = "latentwire",
                                     .keys = {.name = "latentwire",
                                              .models = {kLatentModel, kReaderModel},
                                              .fields = latent_fields,
                                              .settle = settle_engine_switches,
                                              .check = check_latent_keys},
                                     .open = open,
                                     .add_commands = add_latent_command,
                                     .add_eval = add_latent_eval,
                                     .quality = quality,
                                     .set_absolute_paths = make_absolute}};

}  // namespace
}  // namespace fullbore::latentwire

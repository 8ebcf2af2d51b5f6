#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "workloads/energy_flow/energy_command.h"
#include "workloads/energy_flow/energy_eval.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/energy_picture.h"
#include "workloads/energy_flow/text_losses.h"
#include "workloads/energy_flow/text_tokens.h"

namespace fullbore::energy_flow {
namespace {

constexpr const char* kFlow = "energy_flow";
constexpr const char* kBridge = "energy_bridge";

bool is_bridge(const Config& config) { return config.model.name == kBridge; }

/// What a row of a batch is.
const char* sample_unit(const Config& config) { return is_bridge(config) ? "texts" : "samples"; }

std::string bridge_identity(const Config& config) {
  const EnergyKeys::Bridge& bridge = energy_keys(config).bridge;
  return fmt::format("{} width={} layers={}+{} heads={} hidden={} memory={}", bridge.encoder,
                     bridge.width, bridge.layers, bridge.decoder_layers, bridge.heads,
                     bridge.hidden, bridge.memory);
}

/// All that decides what the parameters mean. Capacity, thresholds and the batch may differ.
std::string model_identity(const Config& config) {
  const EnergyKeys::Model& model = energy_keys(config).model;
  const EnergyKeys::Lattice& lattice = energy_keys(config).lattice;
  if (is_bridge(config))
    return fmt::format("energy bridge {}x{} embedding={} {}", lattice.width, lattice.height,
                       model.embedding_width, bridge_identity(config));
  std::string text = fmt::format(
      "energy flow {} {}x{}x{} embedding={} neuron={}x{} carrier={}x{} head={} train_mapper={}",
      lattice.mode, lattice.width, lattice.height, lattice.depth, model.embedding_width,
      model.neuron_hidden, model.neuron_outputs, model.carrier_layers, model.carrier_hidden,
      model.head_hidden, model.train_mapper);
  if (has_bridge(config)) text += " bridge " + bridge_identity(config);
  return text;
}

/// The pairs of a job, the last of them held out.
class PairData {
 public:
  PairData(const Config& config, Console& console) {
    const EnergyKeys::Data& keys = energy_keys(config).data;
    const int64_t width = energy_keys(config).model.embedding_width;
    if (config.data.path.empty()) {
      pairs_ = std::make_shared<const EmbeddingPairs>(EmbeddingPairs::of_corpus(
          static_cast<uint64_t>(keys.corpus_key), 0, keys.pairs + keys.validation_pairs, width));
      training_ = keys.pairs;
      name_ = fmt::format("the synthetic corpus {}", keys.corpus_key);
      tokenize(config);
      return;
    }
    pairs_ = std::make_shared<const EmbeddingPairs>(
        EmbeddingPairs::of_file(config.data.path, width, console));
    const auto held_out =
        static_cast<int64_t>(config.data.validation_fraction * static_cast<double>(pairs_->size()));
    training_ = pairs_->size() - held_out;
    name_ = config.data.path;
    if (training_ == 0)
      throw DataError(fmt::format("{}: all {} pairs are held out (data.validation_fraction)",
                                  config.data.path, pairs_->size()));
    tokenize(config);
  }

  const std::string& name() const { return name_; }
  int64_t held_out() const { return pairs_->size() - training_; }

  /// Of the texts; there is one with a text bridge.
  const std::optional<TextForm>& form() const { return form_; }
  TextTokens text_tokens() const { return form_ ? energy_flow::text_tokens(*form_) : TextTokens(); }

  LossFunction loss(const Config& config) const {
    return is_bridge(config) ? bridge_loss(config, text_tokens())
                             : energy_loss(config, text_tokens());
  }
  std::vector<BatchField> fields(const Config& config) const {
    const int64_t width = energy_keys(config).model.embedding_width;
    const int64_t length = form_ ? form_->length() : 0;
    return is_bridge(config) ? TextBatches::fields_of(config.train.batch_size, width, length)
                             : PairBatches::fields_of(config.train.batch_size, width, length);
  }
  std::shared_ptr<const BatchSource> training(const Config& config) const {
    return batches(config, 0, training_, static_cast<uint64_t>(config.run.seed),
                   [config](uint64_t position) { return step_settings(config, position); });
  }
  ValidationSet validation(const Config& config) const {
    const int64_t batch = config.train.batch_size;
    ValidationSet set;
    set.source = batches(config, training_, held_out(), std::nullopt,
                         [settings = final_settings(config)](uint64_t) { return settings; });
    const int64_t examples = held_out() * (is_bridge(config) ? 2 : 1);
    // Whole batches: no example counts twice, unless there are fewer than one batch of them.
    set.batches = static_cast<uint64_t>(std::max<int64_t>(1, examples / batch));
    if (config.train.eval_batches > 0)
      set.batches = std::min(set.batches, static_cast<uint64_t>(config.train.eval_batches));
    return set;
  }
  /// Held-out pairs, or those of training where there are none.
  PairRange shown() const {
    return held_out() > 0 ? PairRange{pairs_, training_, held_out()}
                          : PairRange{pairs_, 0, training_};
  }
  std::string identity() const {
    return fmt::format("{} pairs, xxHash64 {}, {} held out", pairs_->size(),
                       hash_hex(pairs_->hash()), held_out());
  }
  std::string about() const {
    std::string text =
        fmt::format("pairs  {}: {} to train on, {} held out", name_, training_, held_out());
    if (form_)
      text +=
          fmt::format("; {} tokens ({}), {} of {} texts cut at {}", form_->vocabulary(),
                      form_->tokenizer().kind(), tokens_->cut, 2 * pairs_->size(), form_->length());
    return text;
  }

 private:
  void tokenize(const Config& config) {
    if (!has_bridge(config)) return;
    const EnergyKeys::Bridge& bridge = energy_keys(config).bridge;
    form_.emplace(bridge_tokenizer(bridge.tokenizer), bridge.tokens,
                  "bridge.tokenizer " + bridge.tokenizer);
    tokens_ = std::make_shared<const PairTokens>(tokenize_pairs(*pairs_, *form_, name_));
  }
  std::shared_ptr<const BatchSource> batches(const Config& config, int64_t first, int64_t count,
                                             std::optional<uint64_t> seed,
                                             std::function<StepSettings(uint64_t)> settings) const {
    const int64_t batch = config.train.batch_size;
    if (is_bridge(config))
      return std::make_shared<TextBatches>(pairs_, tokens_, first, count, batch, seed);
    return std::make_shared<PairBatches>(pairs_, tokens_, first, count, batch, seed,
                                         std::move(settings));
  }

  std::shared_ptr<const EmbeddingPairs> pairs_;
  std::optional<TextForm> form_;
  std::shared_ptr<const PairTokens> tokens_;
  int64_t training_ = 0;
  std::string name_;
};

double result_of(const StepResults& results, const char* name) {
  for (const auto& [known, value] : results)
    if (known == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

/// "12.0 steps, 4210 flows, 12 dropped": of the last microbatches, on the average.
std::string figures(const StepResults& results, double /*validation_loss*/) {
  std::string text = fmt::format("{:.1f} steps  {:.0f} flows", result_of(results, "steps"),
                                 result_of(results, "created"));
  if (const double dropped = result_of(results, "dropped"); dropped > 0)
    text += fmt::format("  {:.0f} dropped", dropped);
  return text;
}

TrainingJob job(const Config& config, const PairData& data) {
  TrainingJob job;
  job.loss = data.loss(config);
  job.training = data.training(config);
  if (data.held_out() > 0) job.validation = data.validation(config);
  job.tokens_per_step = config.train.batch_size;
  job.sample_unit = sample_unit(config);
  if (is_bridge(config)) {
    job.shown = {{"encoder_cosine", "cosine"}, {"token_accuracy", "tokens right"}};
  } else {
    job.figures = figures;
    job.shown = {{"completed", "completed"}};
  }
  if (data.form()) job.tokenizer = data.form()->tokenizer().to_json();
  job.options = training_options(config);
  job.identity = {{"data", data.identity()}, {"model", model_identity(config)}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

OpenedWorkload open(const Config& config, Console& console, const StandIn& synthetic) {
  if (synthetic.vocabulary > 0)
    throw UsageError("--vocabulary is for language models; model.name is " + config.model.name);
  const auto data = std::make_shared<const PairData>(config, console);
  OpenedWorkload workload;
  workload.unit = "numbers";
  workload.sample = sample_unit(config);
  workload.batches = data->name();
  workload.loss = [data](const Config& each) { return data->loss(each); };
  workload.shapes = [data](const Config& each) {
    return std::vector<std::vector<BatchField>>{data->fields(each)};
  };
  workload.validates = [data](const Config&) { return data->held_out() > 0; };
  workload.job = [data](const Config& each) { return job(each, *data); };
  workload.about = [data](const Config&) { return data->about(); };
  if (!is_bridge(config))
    workload.show = [data](const Config&, const RunDirectory& run, Console& lines) {
      keep_picture(run, data->shown(), lines);
    };
  workload.weight_keys = {"lattice.mode", "lattice.width", "lattice.height"};
  return workload;
}

/// Its specification has a margin for losses alone; cosines and accuracies of the bridge take a point.
QualityMetrics quality(const Config& config) {
  constexpr double kShare = 0.02, kPoint = 0.01;
  QualityMetrics metrics = {{.name = "loss",
                             .margin = kShare,
                             .is_relative = true,
                             .source = "specification of energy-flow, section 6, 8: within 2 %"}};
  if (is_bridge(config))
    metrics.push_back({.name = "encoder_cosine",
                       .better = Better::higher,
                       .margin = kPoint,
                       .source = "a hundredth"});
  if (is_bridge(config) || has_bridge(config))
    metrics.push_back({.name = "token_accuracy",
                       .better = Better::higher,
                       .margin = kPoint,
                       .source = "a point"});
  return metrics;
}

void make_absolute(Config& config) {
  std::string& path = config.get<EnergyKeys>().bridge.tokenizer;
  if (!path.empty()) path = std::filesystem::absolute(path).string();
}

const WorkloadRegistrar kEnergy{{.name = "energy_flow",
                                 .keys = {.name = "energy_flow",
                                          .models = {kFlow, kBridge},
                                          .fields = energy_fields,
                                          .check = check_energy_keys},
                                 .open = open,
                                 .add_commands = add_energy_command,
                                 .add_eval = add_energy_eval,
                                 .quality = quality,
                                 .set_absolute_paths = make_absolute}};

}  // namespace
}  // namespace fullbore::energy_flow

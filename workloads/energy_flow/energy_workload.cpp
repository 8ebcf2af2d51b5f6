#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "workloads/energy_flow/energy_command.h"
#include "workloads/energy_flow/energy_eval.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore::energy_flow {
namespace {

constexpr const char* kSample = "samples";

/// All that decides what the parameters mean. Capacity, thresholds and the batch may differ.
std::string model_identity(const Config& config) {
  const EnergyKeys::Model& model = energy_keys(config).model;
  const EnergyKeys::Lattice& lattice = energy_keys(config).lattice;
  return fmt::format(
      "energy flow {} {}x{}x{} embedding={} neuron={}x{} carrier={}x{} head={} train_mapper={}",
      lattice.mode, lattice.width, lattice.height, lattice.depth, model.embedding_width,
      model.neuron_hidden, model.neuron_outputs, model.carrier_layers, model.carrier_hidden,
      model.head_hidden, model.train_mapper);
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
  }

  const std::string& name() const { return name_; }
  int64_t held_out() const { return pairs_->size() - training_; }

  std::shared_ptr<const BatchSource> training(const Config& config) const {
    return std::make_shared<PairBatches>(
        pairs_, 0, training_, config.train.batch_size, static_cast<uint64_t>(config.run.seed),
        [config](uint64_t position) { return step_settings(config, position); });
  }
  ValidationSet validation(const Config& config) const {
    const int64_t batch = config.train.batch_size;
    ValidationSet set;
    set.source = std::make_shared<PairBatches>(
        pairs_, training_, held_out(), batch, std::nullopt,
        [settings = final_settings(config)](uint64_t) { return settings; });
    // Whole batches: no pair counts twice, unless there are fewer than one batch of them.
    set.batches = static_cast<uint64_t>(std::max<int64_t>(1, held_out() / batch));
    if (config.train.eval_batches > 0)
      set.batches = std::min(set.batches, static_cast<uint64_t>(config.train.eval_batches));
    return set;
  }
  std::string identity() const {
    return fmt::format("{} pairs, xxHash64 {}, {} held out", pairs_->size(),
                       hash_hex(pairs_->hash()), held_out());
  }
  std::string about() const {
    return fmt::format("pairs  {}: {} to train on, {} held out", name_, training_, held_out());
  }

 private:
  std::shared_ptr<const EmbeddingPairs> pairs_;
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
  job.loss = energy_loss(config);
  job.training = data.training(config);
  if (data.held_out() > 0) job.validation = data.validation(config);
  job.tokens_per_step = config.train.batch_size;
  job.sample_unit = kSample;
  job.figures = figures;
  job.shown = {{"completed", "completed"}};
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
  workload.sample = kSample;
  workload.batches = data->name();
  workload.loss = energy_loss;
  workload.shapes = [](const Config& each) {
    return std::vector<std::vector<BatchField>>{
        PairBatches::fields_of(each.train.batch_size, energy_keys(each).model.embedding_width)};
  };
  workload.validates = [data](const Config&) { return data->held_out() > 0; };
  workload.job = [data](const Config& each) { return job(each, *data); };
  workload.about = [data](const Config&) { return data->about(); };
  workload.weight_keys = {"lattice.mode", "lattice.width", "lattice.height"};
  return workload;
}

const WorkloadRegistrar kEnergy{{.name = "energy_flow",
                                 .keys = {.name = "energy_flow",
                                          .models = {"energy_flow"},
                                          .fields = energy_fields,
                                          .check = check_energy_keys},
                                 .open = open,
                                 .add_commands = add_energy_command,
                                 .add_eval = add_energy_eval}};

}  // namespace
}  // namespace fullbore::energy_flow

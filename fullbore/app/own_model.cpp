#include "fullbore/app/own_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "fullbore/app/output.h"
#include "fullbore/app/own_commands.h"
#include "fullbore/app/user_code.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/trace/distinct_layers.h"
#include "fullbore/train/batch_rows.h"
#include "fullbore/train/default_job.h"

namespace fullbore {
namespace {

std::shared_ptr<const BatchSource> source(const OwnModel& model, const Config& config,
                                          bool held_out) {
  return own_source(held_out ? model.evaluation : model.data, model.batch_axis, config,
                    held_out ? 1 : 0);
}

/// A metric that is shown and that there is not would be missed by nobody. One may be of training or of evaluation alone.
class ShownMetrics {
 public:
  ShownMetrics(const std::vector<ShownMetric>& shown, bool evaluates)
      : shown_(shown), is_traced_{!evaluates, false} {}

  /// Of a loss that was traced. UsageError: both kinds were, and neither has it.
  void check(const Loss& made, bool training) {
    const std::lock_guard lock(mutex_);
    for (const Metric& metric : made.metrics) found_.push_back(metric.name);
    is_traced_[training ? 1 : 0] = true;
    if (!is_traced_[0] || !is_traced_[1]) return;
    for (const ShownMetric& each : shown_)
      if (std::ranges::find(found_, each.name) == found_.end())
        throw UsageError(fmt::format("the model shows the metric '{}', which its loss has not.{}",
                                     each.name, did_you_mean(each.name, found_)));
  }

 private:
  std::mutex mutex_;
  std::vector<ShownMetric> shown_;
  std::vector<std::string> found_;
  bool is_traced_[2];  ///< for evaluation, for training
};

bool evaluates(const OwnModel& model) { return static_cast<bool>(model.evaluation.fill); }

LossFunction loss_of(const OwnModel& model, const Config& config) {
  // Names and their order are the same in every shape.
  const auto kept = std::make_shared<const Config>(config);
  const auto shown = std::make_shared<ShownMetrics>(model.metrics, evaluates(model));
  return [loss = model.loss, fields = model.data.fields, shown, kept, name = model.name](
             Trace& trace, std::span<const Tensor> batch) {
    const auto failed = [&](const char* reason) {
      return UsageError(fmt::format("the loss of '{}' threw: {}", name, reason));
    };
    return run_user_code(
        [&] {
          Loss made = loss(trace, BatchTensors(fields, batch, *kept));
          shown->check(made, trace.training());
          return made;
        },
        failed);
  };
}

uint64_t evaluation_batches(const OwnModel& model, const Config& config) {
  const int64_t asked = config.train.eval_batches;
  return static_cast<uint64_t>(asked > 0 ? std::min(asked, model.evaluation_batches)
                                         : model.evaluation_batches);
}

TrainingJob job_of(const OwnModel& model, const Config& config) {
  TrainingJob job;
  job.loss = loss_of(model, config);
  job.training = source(model, config, false);
  if (evaluates(model))
    job.validation = ValidationSet{source(model, config, true), evaluation_batches(model, config)};
  job.sample_unit = model.unit;
  job.shown = model.metrics;
  job.options = training_options(config);
  job.identity = {{"model", model.name}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

std::string batch_text(const OwnModel& model, const Config& config) {
  const std::shared_ptr<const BatchSource> data = source(model, config, false);
  return model.batch_axis < 0 ? fmt::format("batches of {}", data->fields().front().type.text())
                              : fmt::format("{} {}", batch_rows(data->fields()), model.unit);
}

void require_whole(const OwnModel& model) {
  const auto refuse = [&](const std::string& words) {
    throw UsageError(fmt::format("the model '{}' {}", model.name, words));
  };
  if (model.name.empty()) refuse("has no name");
  if (!model.loss) refuse("has no loss: .loss = a function of a Trace and a batch");
  if (!model.data.fill) refuse("has no data: .data = batches(fields, fill)");
  check_described(model.data);
  if (evaluates(model)) {
    check_described(model.evaluation);
    check_alike(model.data, model.evaluation);
  }
  if (model.unit.empty()) refuse("has no unit: .unit = \"images\"");
  if (evaluates(model) && model.evaluation_batches < 1)
    refuse(fmt::format("has {} batches to evaluate", model.evaluation_batches));
}

}  // namespace

Workload own_workload(const OwnModel& given) {
  require_whole(given);
  const auto model = std::make_shared<const OwnModel>(given);
  Workload workload;
  workload.name = model->name;
  workload.keys.models = {model->name};
  workload.keys.is_default = true;
  workload.keys.fields = [model] {
    std::vector<ConfigField> fields = model->keys;
    for (ConfigField& field : fields) field.models = {model->name};
    return fields;
  };
  if (model->batch_axis < 0) workload.keys.settles_rows = [](const Config&) { return true; };
  workload.open = [model](const Config&, Console&, const StandIn&) {
    OpenedWorkload opened;
    opened.loss = [model](const Config& config) { return loss_of(*model, config); };
    opened.shapes = [model](const Config& config) {
      return source(*model, config, false)->shapes();
    };
    opened.validates = [model](const Config&) { return evaluates(*model); };
    opened.job = [model](const Config& config) { return job_of(*model, config); };
    opened.sample = model->unit;
    opened.unit = model->unit;
    opened.batches = model->unit;
    opened.about = [model](const Config& config) {
      return fmt::format("data     {}", batch_text(*model, config));
    };
    opened.batch_size = [model](const Config& config) { return batch_text(*model, config); };
    return opened;
  };
  if (!model->quality.empty()) workload.quality = [model](const Config&) { return model->quality; };
  workload.add_eval = [model](Command) { return own_eval(*model); };
  return workload;
}

int app(int argc, const char* const* argv, OwnModel model) {
  if (model.name.empty() && argc > 0)
    model.name = std::filesystem::path(argv[0]).filename().string();
  std::optional<Workload> workload;
  try {
    workload = own_workload(model);
    workload->add_commands = add_own_export_command;
    std::vector<std::string> settings;
    if (model.batch_axis >= 0) {
      check_rows(model.data, model.batch_axis);
      if (evaluates(model)) check_rows(model.evaluation, model.batch_axis);
      for (BatchField& field : model.data.fields)
        if (field.batch_axis == 0) field.batch_axis = model.batch_axis;
      settings.push_back(fmt::format("train.batch_size={}", batch_rows(model.data.fields)));
    }
    settings.insert(settings.end(), model.settings.begin(), model.settings.end());
    set_default_job(std::move(settings));
    set_distinct_layers(true);
  } catch (const UsageError& error) {
    print_message("{}: {}\n", model.name, error.what());
    return static_cast<int>(error.code());
  }
  return app(argc, argv, {&*workload, 1});
}

}  // namespace fullbore

#include "fullbore/app/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "fullbore/app/workload.h"
#include "fullbore/base/bf16_note.h"
#include "fullbore/base/cache_directory.h"
#include "fullbore/base/private_folder.h"
#include "fullbore/base/processor.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/console.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/batch_scaling.h"
#include "fullbore/train/first_lines.h"
#include "fullbore/train/fp8_keys.h"
#include "fullbore/train/memory_fit.h"
#include "fullbore/train/process_memory.h"
#include "fullbore/train/sensor_keys.h"
#include "fullbore/train/storage_keys.h"

namespace fullbore {

namespace {

/// engine.fp32_modules, and those that the model keeps in fp32 by itself.
std::vector<std::string> fp32_modules(const Config& config) {
  CompileOptions options;
  options.fp32_scopes = config.engine.fp32_modules;
  if (const Workload* const workload = find_workload(config);
      workload != nullptr && workload->set_compile_options)
    workload->set_compile_options(config, options);
  return options.fp32_scopes;
}

}  // namespace

OptimizerOptions optimizer_options(const Config& config) {
  const Config::Optim& optim = config.optim;
  const double scale = learning_rate_scale(config);
  OptimizerOptions options = {
      .name = optim.name,
      .schedule = {.schedule = optim.schedule,
                   .learning_rate = scale * optim.learning_rate,
                   .minimum_learning_rate = scale * optim.minimum_learning_rate,
                   .warmup_steps = optim.warmup_steps,
                   .total_steps = config.train.steps,
                   .decay_fraction = optim.decay_fraction,
                   .warmup_from_zero = optim.warmup_from_zero},
      .plateau = {.factor = optim.plateau_factor,
                  .patience = optim.plateau_patience,
                  .interval = optim.plateau_interval},
      .beta1 = optim.beta1,
      .beta2 = optim.beta2,
      .epsilon = optim.epsilon,
      .momentum = optim.momentum,
      .nesterov = optim.nesterov,
      .weight_decay = optim.weight_decay,
      .decays_all = optim.decay_policy == "all",
      .clip_norm = optim.clip_norm,
      .clip_value = optim.clip_value,
      .ema_decay = optim.ema_decay,
      .ema_warms_up = optim.ema_warmup,
      .norms = optim.norms,
      .adjustable = config.train.max_restores > 0,
      .storage = storage_options(config),
      .noise_scale = optim.noise_scale,
      .fp8_matmuls = has_fp8(config),
      .fp8_excluded = has_fp8(config) ? fp32_modules(config) : std::vector<std::string>()};
  const Config::Engine& engine = config.engine;
  if (engine.precision == "fp16")
    options.loss_scaling = {.initial = engine.loss_scale,
                            .growth = engine.loss_scale_growth,
                            .backoff = engine.loss_scale_backoff,
                            .interval = engine.loss_scale_interval};
  for (const std::string& group : optim.groups)
    options.groups.push_back(parse_parameter_group(group));
  if (const Workload* const workload = find_workload(config);
      workload != nullptr && workload->set_optimizer_options)
    workload->set_optimizer_options(config, options);
  return options;
}

namespace {

/// What several programs have in common is told once.
struct ToldLines {
  std::mutex mutex;
  std::set<std::string> lines;
};

/// Warns on stderr of nodes without a kernel, of each once, however many programs have it.
class FallbackWarnings {
 public:
  void operator()(std::span<const KernelFallback> fallbacks) const {
    const std::scoped_lock lock(told_->mutex);
    std::vector<KernelFallback> news;
    for (const KernelFallback& each : fallbacks)
      if (told_->lines.insert(each.node + '\n' + each.location).second) news.push_back(each);
    Console console;
    for (const std::string& line : fallback_lines(news))
      console.line(fmt::format("fullbore: warning: {}", line));
  }

 private:
  std::shared_ptr<ToldLines> told_ = std::make_shared<ToldLines>();
};

/// Likewise of what was asked for and is done otherwise.
class NoticeWarnings {
 public:
  void operator()(std::span<const std::string> notices) const {
    const std::scoped_lock lock(told_->mutex);
    Console console;
    for (const std::string& line : notices)
      if (told_->lines.insert(line).second)
        console.line(fmt::format("fullbore: warning: {}", line));
  }

 private:
  std::shared_ptr<ToldLines> told_ = std::make_shared<ToldLines>();
};

}  // namespace

CompileOptions compile_options(const Config& config) {
  CompileOptions options;
  options.precision = config.engine.precision == "bf16"   ? DType::bf16
                      : config.engine.precision == "fp16" ? DType::f16
                                                          : DType::f32;
  options.tf32 = config.engine.precision == "tf32";
  options.fp8 = has_fp8(config);
  options.fp32_scopes = config.engine.fp32_modules;
  if (const Workload* const workload = find_workload(config);
      workload != nullptr && workload->set_compile_options)
    workload->set_compile_options(config, options);
  options.recompute = config.engine.recompute == "full"   ? Recompute::full
                      : config.engine.recompute == "auto" ? Recompute::automatic
                                                          : Recompute::off;
  if (config.engine.attention == "decomposed")
    options.decomposed = {"attention", "attention_gradient", "packed_attention",
                          "packed_attention_gradient", "paged_attention"};
  options.row_invariant = config.engine.row_invariant;
  options.cublaslt = config.engine.cublaslt;
  options.compile = *parse_compile_effort(config.engine.compile);
  options.memory_bytes = plan_memory_bytes(config, {});
  options.copies_frozen_weights = config.train.frozen_from.empty();
  options.keeps_snapshot = config.train.background_saves;
  options.plan_folder = compile_cache_directory("plans");
  options.on_fallbacks = FallbackWarnings();
  options.on_notices = NoticeWarnings();
  std::vector<std::string> known;
  for (const Pass& pass : pipeline())
    if (pass.optional) known.emplace_back(pass.name);
  for (const std::string& name : config.engine.disabled_passes)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError(fmt::format("engine.disabled_passes: there is no optional pass '{}'.{}",
                                   name, did_you_mean(name, known)));
  options.passes.disabled = {config.engine.disabled_passes.begin(),
                             config.engine.disabled_passes.end()};
  return options;
}

int64_t trained_memory_bytes(const Config& config) {
  if (own_memory_bytes(config.engine.device)) return plan_memory_bytes(config, {});
  constexpr int64_t kNodes = 1000;  // of graphs that only go forwards
  ProcessMemory process = process_memory(
      {.nodes = kNodes, .workers = worker_count(config), .processors = available_processors()});
  process.save_bytes = 0;
  return plan_memory_bytes(config, process);
}

CompileOptions trained_options(const Config& config) {
  CompileOptions options = compile_options(config);
  options.memory_bytes = trained_memory_bytes(config);
  options.fp8 = false;  // of training alone
  options.must_fit = true;
  options.keeps_snapshot = false;
  return options;
}

Config named_config(const std::string& path, std::span<const std::string> overrides) {
  return told_config(load_named_config(path, overrides));
}

Config told_config(StoredConfig stored) {
  Console console;
  for (const std::string& notice : stored.notices) console.line("fullbore: notice: " + notice);
  return std::move(stored.config);
}

void choose_processor(const Config& config) {
  limit_processor(config.engine.processor, "engine.processor");
}

void choose_caches(const Config& config) {
  if (!config.engine.cache_dir.empty())
    setenv("FULLBORE_CACHE", config.engine.cache_dir.c_str(), 1);
  if (!config.engine.cache) setenv("FULLBORE_COMPILE_CACHE", "off", 1);
}

std::string data_cache_folder(const Config& config, std::string_view what) {
  if (config.data.cache_dir.empty()) return cache_directory(what);
  const auto folder = open_private_folder(config.data.cache_dir, Readers::anyone);
  if (!folder.ok()) throw DataError("data.cache_dir: " + folder.error());
  return config.data.cache_dir;
}

int worker_count(const Config& config) {
  return config.engine.threads > 0 ? static_cast<int>(config.engine.threads)
                                   : available_processors();
}

std::shared_ptr<Device> open_job_device(const Config& config) {
  return open_device(config.engine.device, worker_count(config));
}

std::shared_ptr<Device> open_training_device(const Config& config) {
  return open_device(config.engine.device, worker_count(config), has_moments_in_host(config));
}

std::string_view precision_note(const Config& config) {
  const bool concerned =
      config.engine.precision == "bf16" && resolved_device(config.engine.device) == "cpu";
  return concerned ? bf16_note(this_processor()) : "";
}

Microbatches microbatches(const Config& config) {
  return {.accumulate = config.engine.accumulate,
          .parallel = std::max<int64_t>(1, config.engine.parallel_microbatches)};
}

TrainingOptions training_options(const Config& config) {
  TrainingOptions options;
  options.steps = config.train.steps;
  options.log_interval = config.log.interval;
  options.evaluation_interval = config.train.eval_interval;
  options.checkpoint_interval = config.train.checkpoint_interval;
  options.patience = config.train.early_stopping;
  options.max_skipped_steps = config.train.max_skipped_steps;
  options.max_restores = config.train.max_restores;
  options.saves = {.retention = {config.train.keep_checkpoints, config.train.keep_best},
                   .compression = compression(config.train.compress_checkpoints),
                   .background = config.train.background_saves};
  options.detail = detail(config.log.detail);
  options.metrics = options.detail == Detail::off    ? MetricsLevel::loss
                    : options.detail == Detail::info ? metrics_level(config.log.metrics)
                                                     : MetricsLevel::all;
  options.sinks = metric_sink_options(config);
  options.sensors = sensor_options(config);
  options.seed = static_cast<uint64_t>(config.run.seed);
  options.optimizer = optimizer_options(config);
  options.parts = microbatches(config);
  options.evaluate = config.train.evaluate == "ema" ? Weights::ema : Weights::raw;
  options.compile = compile_options(config);
  options.loader = {.workers = static_cast<int>(config.data.workers),
                    .prefetch = static_cast<int>(config.data.prefetch)};
  options.device = config.engine.device;
  options.workers = worker_count(config);
  options.moments_in_host = has_moments_in_host(config);
  return options;
}

}  // namespace fullbore

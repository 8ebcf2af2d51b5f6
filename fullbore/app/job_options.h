#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fullbore/device/device.h"
#include "fullbore/train/stored_config.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// What of a configuration is the same for every kind of model.

OptimizerOptions optimizer_options(const Config& config);
Microbatches microbatches(const Config& config);
/// UsageError if a pass to be left out does not exist, or may not be.
CompileOptions compile_options(const Config& config);
/// What engine.memory_budget leaves to a trained model beside the process: its weights, and the programs that run it.
int64_t trained_memory_bytes(const Config& config);
/// compile_options() for those programs, which are refused beyond that.
CompileOptions trained_options(const Config& config);
TrainingOptions training_options(const Config& config);
/// The configuration that the command names (load_named_config()); what a stored one may not set is told.
Config named_config(const std::string& path, std::span<const std::string> overrides);
/// Tells on stderr what was ignored, and returns the rest.
Config told_config(StoredConfig stored);
/// engine.threads, or all processors there are.
int worker_count(const Config& config);
/// engine.device, with as many threads. Compilers of its own plan for it; threads start with the first run.
std::shared_ptr<Device> open_job_device(const Config& config);
/// The same for a job's training step, as engine.offload says. UsageError where that is for no such device.
std::shared_ptr<Device> open_training_device(const Config& config);
/// What people are told of engine.precision on this processor; mostly "".
std::string_view precision_note(const Config& config);
/// engine.processor becomes that of the process. UsageError if the machine has no such instructions.
void choose_processor(const Config& config);
/// engine.cache and engine.cache_dir become those of the process.
void choose_caches(const Config& config);
/// Where data are kept in the form they are used in: data.cache_dir, or the folder `what` of the user's cache.
/// DataError: data.cache_dir cannot be made, is not the user's own, or lets others write.
std::string data_cache_folder(const Config& config, std::string_view what);

}  // namespace fullbore

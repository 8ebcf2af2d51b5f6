#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/train/config_sections.h"

namespace fullbore {

/// What model.name is, left out: that of the workload that says so (config_keys.h), or the only one that there is. "" if
/// there are several and none says so: then a configuration must name its own.
std::string default_model();

/// A job: all that its YAML file and the command line may set. What each key means, its range and
/// its type stand in the table of config_schema.cpp, from which parsing, checking, printing and
/// documentation follow; the default values stand here. Keys that rooms and workloads register have theirs in structs
/// of their own.
struct Config {
  struct Run {
    std::string dir;
    std::string name;
    int64_t seed = 1;
    bool operator==(const Run&) const = default;
  } run;
  struct Data {
    std::string path;
    std::string cache_dir;
    double validation_fraction = 0.1;
    int64_t workers = 1;
    int64_t prefetch = 4;
    bool operator==(const Data&) const = default;
  } data;
  struct Model {
    std::string name = default_model();
    double dropout = 0;
    std::string initialize_from = {};
    bool initialize_partial = false;
    bool operator==(const Model&) const = default;
  } model;
  struct Optim {
    std::string name = "adamw";
    double learning_rate = 1e-3;
    double minimum_learning_rate = 1e-4;
    int64_t warmup_steps = 100;
    bool warmup_from_zero = false;
    std::string schedule = "cosine";
    double beta1 = 0.9;
    double beta2 = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.1;
    std::string decay_policy = "matrices";
    double clip_norm = 1;
    double clip_value = 0;
    double momentum = 0.95;
    bool nesterov = true;
    double decay_fraction = 0.2;
    double plateau_factor = 0.5;
    int64_t plateau_patience = 10;
    int64_t plateau_interval = 100;
    std::vector<std::string> groups = {};
    double ema_decay = 0;
    bool ema_warmup = true;
    bool noise_scale = false;
    std::string norms = "off";
    bool operator==(const Optim&) const = default;
  } optim;
  struct Train {
    int64_t steps = 2000;
    int64_t batch_size = 12;  ///< 0: auto
    double label_smoothing = 0;
    std::vector<std::string> freeze = {};
    std::string frozen_from = {};
    int64_t eval_interval = 250;
    int64_t eval_batches = 0;
    std::string evaluate = "raw";
    int64_t checkpoint_interval = 250;
    int64_t keep_checkpoints = 2;
    int64_t keep_best = 1;
    std::string compress_checkpoints = "none";
    bool background_saves = true;
    int64_t early_stopping = 0;
    int64_t max_skipped_steps = 10;
    int64_t max_restores = 0;
    bool operator==(const Train&) const = default;
  } train;
  struct Engine {
    std::string device = "cpu";
    std::string precision = "fp32";
    std::vector<std::string> fp32_modules;
    int64_t accumulate = 1;             ///< 0: auto
    int64_t parallel_microbatches = 0;  ///< 0: auto
    double loss_scale = 65536;
    double loss_scale_growth = 2;
    double loss_scale_backoff = 0.5;
    int64_t loss_scale_interval = 2000;
    int64_t threads = 0;
    std::string processor = "auto";
    std::string attention = "tiled";
    bool row_invariant = false;
    bool cublaslt = false;
    std::string compile = "full";
    std::string recompute = "off";
    std::string memory_budget = {};
    std::vector<std::string> degrade;
    std::vector<std::string> disabled_passes;
    bool cache = true;
    std::string cache_dir;
    bool operator==(const Engine&) const = default;
  } engine;
  struct Log {
    int64_t interval = 10;
    std::string level = "info";
    std::string detail = "info";
    std::string metrics = "all";
    bool tensorboard = false;
    int64_t prometheus_port = 0;
    bool operator==(const Log&) const = default;
  } log;

  /// A struct of registered keys.
  template <typename Keys>
  const Keys& get() const {
    return sections.get<Keys>();
  }
  template <typename Keys>
  Keys& get() {
    return sections.get<Keys>();
  }
  ConfigSections sections;

  bool operator==(const Config&) const = default;
};

/// Reads a YAML file of sections and keys, then applies `overrides`, each "section.key=value", of
/// which a later one wins. Keys left out keep their defaults.
/// Throws UsageError, `config: configs/x.yaml:7: unknown key 'train.batchsize'. Did you mean
/// 'train.batch_size'?`: unreadable or malformed file, unknown key, wrong type, value out of range,
/// key met twice, values that do not go together. Whatever the bytes, time and memory stay in
/// proportion to them: aliases, tags and deeper nesting are refused where they begin.
Config load_config(const std::string& path, std::span<const std::string> overrides = {});
/// The same for a text; `source` is how messages name it.
Config parse_config(std::string_view yaml, const std::string& source,
                    std::span<const std::string> overrides = {});

/// Every key with its value, as YAML: reading it back gives the same config.
std::string config_yaml(const Config& config);
/// The same as JSON, which is YAML too: reading it back gives the same config.
std::string config_json(const Config& config);
/// Every key with type, range, default and meaning, for people.
std::string config_documentation();

}  // namespace fullbore

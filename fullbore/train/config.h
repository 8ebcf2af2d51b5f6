#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// A job: all that its YAML file and the command line may set. What each key means, its range and
/// its type stand in the table of config_schema.cpp, from which parsing, checking, printing and
/// documentation follow; the default values stand here.
struct Config {
  struct Run {
    std::string dir;
    std::string name;
    int64_t seed = 1;
    bool operator==(const Run&) const = default;
  } run;
  struct Data {
    std::string path;
    std::string field = "text";
    std::string tokenizer = "character";
    std::string cache_dir;
    double validation_fraction = 0.1;
    std::string split = "fraction";
    std::string batching = "windows";
    std::vector<int64_t> buckets = {};
    int64_t tokens_per_batch = 0;
    std::vector<std::string> mqar_sizes = {};
    int64_t mqar_vocabulary = 0;  ///< 0: 256
    std::vector<int64_t> passkey_lengths = {};
    std::vector<std::string> context_curriculum = {};
    int64_t workers = 1;
    int64_t prefetch = 4;
    bool operator==(const Data&) const = default;
  } data;
  struct Model {
    std::string name = "gpt";
    int64_t layers = 4;
    int64_t heads = 4;
    int64_t width = 128;
    int64_t context = 64;
    double dropout = 0;
    bool bias = false;
    bool tie_head = true;
    std::string activation = "gelu";
    int64_t vocabulary = 0;
    std::string initialize_from = {};
    bool initialize_partial = false;
    bool operator==(const Model&) const = default;
  } model;
  /// Keys of model.name=peptide, of the sections that they are grouped by here.
  struct Peptide {
    struct Data {
      int64_t min_length = 7;
      int64_t max_length = 10;
      std::vector<std::string> ion_types = {"b", "y"};
      bool neutral_losses = false;
      int64_t noise_peaks = 0;
      double peak_dropout = 0;
      double mass_error_ppm = 0;
      double intensity_variation = 0;
      std::vector<std::string> charge_distribution = {"2:0.7", "3:0.25", "4:0.05"};
      double clean_data_ratio = 0;
      double high_noise_share = -1;
      double signal_suppression = 0;
      bool scale_to_base_peak = false;
      int64_t most_intense = 0;
      std::string masses = "reference";
      std::vector<std::string> modifications = {};
      bool start_and_end = true;
      bool trim_peaks = true;
      bool corrupt = false;
      int64_t default_charge = 0;
      std::string on_bad_spectrum = "skip";
      int64_t min_peaks = 10;
      int64_t validation_spectra = 640;
      std::string validation_settings = "first_stage";
      bool operator==(const Data&) const = default;
    } data;
    struct Model {
      int64_t hidden_dim = 256;
      int64_t num_encoder_layers = 2;
      int64_t num_decoder_layers = 2;
      int64_t num_heads = 4;
      int64_t max_peaks = 100;
      int64_t max_seq_len = 25;
      double max_mass = 2000;
      int64_t num_supervision_steps = 8;
      int64_t num_latent_steps = 4;
      bool step_embedding = false;
      bool gated_answer = false;
      std::string precursor_input = "mass";
      bool operator==(const Model&) const = default;
    } model;
    struct Loss {
      double ce_weight = 1;
      std::string iteration_weights = "linear";
      std::string spectrum = "window_huber";
      double spectrum_weight = 0;
      double coverage_sigma = 0.2;
      std::string precursor = "smooth_l1";
      double precursor_weight = 0;
      bool mask_padding = true;
      bool operator==(const Loss&) const = default;
    } loss;
    std::string curriculum = "none";
    std::vector<std::string> curriculum_stages = {};
    bool operator==(const Peptide&) const = default;
  } peptide;
  /// Keys of model.name=hybrid, likewise.
  struct Hybrid {
    struct Model {
      std::string branch = "finch";
      std::string fusion = "gains";
      int64_t mix_rank = 32;
      int64_t decay_rank = 64;
      int64_t inner = 256;
      int64_t mamba_heads = 4;
      int64_t states = 64;
      int64_t convolution = 4;
      int64_t hidden = 512;
      bool channel_mix = false;
      int64_t chunk = 64;
      double gate_start = 0.5;
      bool rwkv_lm_init = true;
      bool recorded_init = false;
      bool learned_state = false;
      bool operator==(const Model&) const = default;
    } model;
    struct Data {
      std::string initial_state = "zero";
      int64_t segments = 1;
      double state_noise = 1;
      bool operator==(const Data&) const = default;
    } data;
    bool diagnostics = false;
    bool operator==(const Hybrid&) const = default;
  } hybrid;
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
    double z_loss = 0;
    int64_t eval_interval = 250;
    int64_t eval_batches = 0;
    std::string evaluate = "raw";
    int64_t checkpoint_interval = 250;
    int64_t keep_checkpoints = 2;
    std::string compress_checkpoints = "none";
    bool background_saves = true;
    int64_t early_stopping = 0;
    int64_t max_skipped_steps = 10;
    int64_t sample_characters = 500;
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
    std::string fused_head = "auto";
    int64_t threads = 0;
    std::string processor = "auto";
    std::string attention = "tiled";
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
    std::string metrics = "all";
    bool tensorboard = false;
    int64_t prometheus_port = 0;
    bool operator==(const Log&) const = default;
  } log;
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

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/config_keys.h"

namespace fullbore {

/// Keys of model.name=latentwire and =latentwire_reader, by section.
struct LatentKeys {
  struct Reader {
    std::string kind = "bpe";
    bool operator==(const Reader&) const = default;
  } reader;
  struct Wire {
    std::string encoder = "bytes";
    std::string text_encoder;
    int64_t max_tokens = 256;
    int64_t slots = 8;
    int64_t own_slots = 0;
    int64_t width = 64;
    int64_t layers = 2;
    int64_t heads = 4;
    bool pre_norm = true;
    int64_t refiner_layers = 0;
    int64_t max_bytes = 512;
    bool question_first = true;
    double keep = 1;
    double final_keep = 1;
    double keep_power = 1;
    bool operator==(const Wire&) const = default;
  } wire;
  struct Receivers {
    std::vector<std::string> folders = {"bpe=runs/latentwire-bpe"};
    std::string anchor_mode = "text";
    std::string anchor = "Answer:";
    std::string scaffold = "plain";
    std::string system =
        "Answer the question with a short phrase from the context and nothing else.";
    std::string begin = "auto";
    int64_t max_answer_tokens = 12;
    std::string calibration = "embed_rms";
    double fixed_rms = 0.02;
    double gain = 1;
    bool colour = false;
    bool operator==(const Receivers&) const = default;
  } receivers;
  struct Conditioning {
    bool deep_prefix = false;
    std::vector<int64_t> attending_blocks = {};
    int64_t attending_heads = 8;
    int64_t coprocessor = 0;
    int64_t rank = 0;
    double rank_scale = 16;
    int64_t adapted_blocks = 8;
    int64_t gist_tokens = 0;
    double gist_dropped = 0.15;
    bool operator==(const Conditioning&) const = default;
  } conditioning;
  struct Loss {
    double first_weight = 0.5;
    std::string first_schedule = "none";
    double first_peak = 0;
    double first_hold = 0.4;
    bool first_autoscale = false;
    double early_weight = 0.5;
    int64_t early_tokens = 4;
    int64_t final_early_tokens = 4;
    double early_power = 1;
    double distillation_weight = 0;
    double temperature = 2;
    double state_weight = 0;
    std::vector<int64_t> state_layers = {1, 2};
    std::string teacher_cache = "off";
    double scale_weight = 0.05;
    double rms_weight = 0;
    double entropy_weight = 0;
    double statistics_weight = 0;
    double slot_weight = 0;
    std::string slot_distance = "cosine";
    double gist_weight = 0.02;
    int64_t text_warmup = 0;
    double text_tail = 0;
    double text_step_weight = 1;
    double align_weight = 1;
    int64_t align_tokens = 1;
    bool operator==(const Loss&) const = default;
  } loss;
  struct Data {
    int64_t training_prompts = 0;  ///< 0: all
    int64_t validation_prompts = 512;
    bool group_by_length = false;
    bool operator==(const Data&) const = default;
  } data;
  /// on, off or check; those that stand for a key of the engine's may be as_set (switches.h).
  struct Switches {
    std::string loader_workers = "as_set";
    std::string token_cache = "on";
    std::string gradient_accumulation = "as_set";
    std::string one_pass = "on";
    std::string mixed_precision = "as_set";
    std::string fused_optimizer = "as_set";
    std::string recompute = "as_set";
    std::string tiled_attention = "as_set";
    std::string length_buckets = "on";
    std::string teacher_cache = "as_set";
    std::string head_rows = "on";
    std::string data_parallel = "as_set";
    bool operator==(const Switches&) const = default;
  } switches;
  bool operator==(const LatentKeys&) const = default;
};

inline const LatentKeys& latent_keys(const Config& config) { return config.get<LatentKeys>(); }

inline constexpr const char* kLatentModel = "latentwire";
inline constexpr const char* kReaderModel = "latentwire_reader";

/// All of them.
std::vector<ConfigField> latent_fields();
/// UsageError for values that do not go together.
void check_latent_keys(const ConfigCheck& check);

}  // namespace fullbore

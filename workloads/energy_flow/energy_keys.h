#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/config_keys.h"

namespace fullbore {

/// Keys of model.name=energy_flow and =energy_bridge, by section.
struct EnergyKeys {
  struct Data {
    int64_t pairs = 5000;
    int64_t validation_pairs = 512;
    int64_t corpus_key = 42;
    bool operator==(const Data&) const = default;
  } data;
  struct Model {
    int64_t embedding_width = 768;
    int64_t neuron_hidden = 32;
    int64_t neuron_outputs = 64;
    int64_t carrier_hidden = 256;
    int64_t carrier_layers = 2;
    int64_t head_hidden = 64;
    double position_z_bias = 0;
    bool train_mapper = false;
    bool operator==(const Model&) const = default;
  } model;
  struct Lattice {
    std::string mode = "relative";
    int64_t width = 20;
    int64_t height = 20;
    int64_t depth = 10;
    int64_t capacity = 50000;
    std::string inject_overflow = "error";
    double spawn_threshold = 0.15;
    int64_t most_spawned = 1;
    double energy_threshold = 0.05;
    double noise = 0.05;
    double final_noise = 0.05;
    bool noise_on_z = true;
    double displacement_scale = 1;
    double least_displacement_scale = 1;
    double z_bias = 0;
    double z_bias_per_age = 0;
    int64_t curriculum_steps = 1000;
    bool project_on_stop = true;
    bool early_stop = true;
    double stop_threshold = 0.95;
    int64_t stop_patience = 3;
    int64_t stop_min_steps = 5;
    std::string stop_denominator = "created";
    std::string stop_scope = "batch";
    std::string readout = "auto";
    std::string importance_gradient = "auto";
    int64_t segments = 1;
    int64_t tile_rows = 0;
    bool operator==(const Lattice&) const = default;
  } lattice;
  struct Bridge {
    std::string encoder = "none";
    std::string tokenizer;
    int64_t tokens = 32;
    int64_t width = 256;
    int64_t layers = 2;
    int64_t decoder_layers = 2;
    int64_t heads = 8;
    int64_t hidden = 512;
    int64_t memory = 512;
    double dropout = 0.1;
    bool operator==(const Bridge&) const = default;
  } bridge;
  struct Loss {
    double collector_weight = 0;
    double text_weight = 0.15;
    double decoder_weight = 0.1;
    bool operator==(const Loss&) const = default;
  } loss;
  bool operator==(const EnergyKeys&) const = default;
};

inline const EnergyKeys& energy_keys(const Config& config) { return config.get<EnergyKeys>(); }

/// All of them.
std::vector<ConfigField> energy_fields();
/// UsageError for values that do not go together.
void check_energy_keys(const ConfigCheck& check);

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Keys of model.name=peptide, of the sections that they are grouped by here.
struct PeptideKeys {
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
  bool operator==(const PeptideKeys&) const = default;
};

inline const PeptideKeys& peptide_keys(const Config& config) { return config.get<PeptideKeys>(); }
inline PeptideKeys& peptide_keys(Config& config) { return config.get<PeptideKeys>(); }

}  // namespace fullbore

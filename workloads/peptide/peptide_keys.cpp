#include "workloads/peptide/peptide_keys.h"

#include <algorithm>

#include "workloads/peptide/peptide_commands.h"
#include "workloads/peptide/peptide_eval.h"
#include "workloads/peptide/peptide_workload.h"

namespace fullbore {
namespace {

constexpr ConfigRange kNotNegative{.low = 0, .high = 1e15};
constexpr ConfigRange kMassWidth{.low = 1e-6, .high = 1e6};
constexpr ConfigRange kShare{.low = 0, .high = 1};
constexpr ConfigRange kFraction{.low = 0, .high = 1, .high_open = true};
// Each layer is traced by itself, those of the core twice, with their gradients: hundreds take gigabytes to compile.
constexpr ConfigRange kDepth{.low = 1, .high = 64};

#define FB_KEY(section, member) \
#section "." #member,         \
      [](Config & config) -> ConfigPlace { return &peptide_keys(config).section.member; }

std::vector<ConfigField> data_fields() {
  return {
      {FB_KEY(data, min_length),
       {1, 1000},
       {},
       "residues of a peptide, at least; of measured ones too"},
      {FB_KEY(data, max_length), {1, 1000}, {}, "residues of a synthetic peptide, at most"},
      {FB_KEY(data, ion_types), {}, {"a", "b", "y"}, "series of fragments in synthetic spectra"},
      {FB_KEY(data, neutral_losses), {}, {}, "fragments that lose water or ammonia are there too"},
      {FB_KEY(data, noise_peaks),
       {0, 10000},
       {},
       "peaks of no fragment, per synthetic or corrupted spectrum"},
      {FB_KEY(data, peak_dropout), kFraction, {}, "share of the fragments' peaks left out"},
      {FB_KEY(data, mass_error_ppm),
       {0, 1e5},
       {},
       "standard deviation of masses in synthetic and corrupted spectra, parts per million"},
      {FB_KEY(data, intensity_variation),
       {0, 100},
       {},
       "standard deviation of the factor on each intensity"},
      {FB_KEY(data, charge_distribution),
       {},
       {},
       "charges 1 to 6 of synthetic precursors and their shares, as 2:0.7"},
      {FB_KEY(data, clean_data_ratio),
       kShare,
       {},
       "share of synthetic or corrupted spectra that nothing disturbs"},
      {FB_KEY(data, high_noise_share),
       {-1, 1},
       {},
       "share of noise as high as 0.2 to 1, the rest below 0.1; -1: all of it is below 0.2"},
      {FB_KEY(data, signal_suppression),
       kShare,
       {},
       "share of the fragments' peaks that are crushed to 0.01 to 0.05"},
      {FB_KEY(data, scale_to_base_peak), {}, {}, "the highest peak of a spectrum becomes 1"},
      {FB_KEY(data, most_intense),
       {0, 10000},
       {},
       "keep so many of the highest peaks; 0: model.max_peaks of the lowest m/z"},
      {FB_KEY(data, masses),
       {},
       {"reference", "full"},
       "of residues: to five decimals, or all digits of the atoms' masses"},
      {FB_KEY(data, modifications),
       {},
       {},
       "of residues, as further symbols: C+57.021, M+15.995, ...; massivekb: its eight",
       false,
       false,
       {},
       {},
       true},
      {FB_KEY(data, start_and_end), {}, {}, "targets have a start and an end symbol"},
      {FB_KEY(data, trim_peaks),
       {},
       {},
       "batches are as wide as their spectra need, those of files in quarters of model.max_peaks"},
      {FB_KEY(data, corrupt),
       {},
       {},
       "training spectra of data.path are disturbed as synthetic ones are, anew each time"},
      {FB_KEY(data, default_charge),
       {0, 6},
       {},
       "of measured spectra that state none, or several; 0: data.on_bad_spectrum decides"},
      {FB_KEY(data, on_bad_spectrum),
       {},
       {"fail", "skip", "try-charges"},
       "spectra that are malformed or state no charge: an error, left out, or each charge is "
       "tried"},
      {FB_KEY(data, min_peaks), {1, 1e6}, {}, "measured spectra with fewer peaks are left out"},
      {FB_KEY(data, validation_spectra),
       {0, 1e9},
       {},
       "synthetic spectra to validate on, always the same; 0: no validation"},
      {FB_KEY(data, validation_settings),
       {},
       {"first_stage", "last_stage"},
       "which stage of the curriculum they are made by"},
  };
}

std::vector<ConfigField> model_fields() {
  return {
      {FB_KEY(model, hidden_dim), {48, 65536}, {}, "channels; a multiple of model.num_heads"},
      {FB_KEY(model, num_encoder_layers), kDepth, {}, "layers over the spectrum"},
      {FB_KEY(model, num_decoder_layers), kDepth, {}, "layers of the recursive core"},
      {FB_KEY(model, num_heads), {1, 1024}, {}, "attention heads of each layer"},
      {FB_KEY(model, max_peaks), {1, 65536}, {}, "peaks of a spectrum that the model sees"},
      {FB_KEY(model, max_seq_len), {4, 4096}, {}, "slots of an answer, start and end included"},
      {FB_KEY(model, max_mass),
       {100, 1e6},
       {},
       "longest wavelength of the mass embedding in Da; precursors have one and a half"},
      {FB_KEY(model, num_supervision_steps), {1, 256}, {}, "answers, each refining the one before"},
      {FB_KEY(model, num_latent_steps), {0, 256}, {}, "steps of thought before each answer"},
      {FB_KEY(model, step_embedding), {}, {}, "the core is told which answer it works on"},
      {FB_KEY(model, gated_answer), {}, {}, "an answer is a gated mixture with the one before"},
      {FB_KEY(model, precursor_input),
       {},
       {"mass", "mz"},
       "what the encoder is told of the precursor: its neutral mass, or mass over charge"},
  };
}

std::vector<ConfigField> loss_fields() {
  return {
      {FB_KEY(loss, ce_weight), kNotNegative, {}, "of the cross-entropy of the answers"},
      {FB_KEY(loss, iteration_weights),
       {},
       {"linear", "uniform", "exponential"},
       "how the answers' losses are weighted"},
      {FB_KEY(loss, spectrum),
       {},
       {"window_huber", "window_l1", "coverage", "rendered"},
       "the term that compares predicted ions with the peaks"},
      {FB_KEY(loss, spectrum_weight),
       kNotNegative,
       {},
       "of that term, where train.curriculum is none; a curriculum has its own"},
      {FB_KEY(loss, coverage_sigma), kMassWidth, {}, "width in Da of a peak in the coverage term"},
      {FB_KEY(loss, precursor),
       {},
       {"smooth_l1", "log_ppm"},
       "the term that compares the predicted mass with the precursor's"},
      {FB_KEY(loss, precursor_weight), kNotNegative, {}, "of that term"},
      {FB_KEY(loss, mask_padding),
       {},
       {},
       "slots behind the answer's end have no mass in these terms"},
  };
}

#undef FB_KEY

std::vector<ConfigField> fields() {
  std::vector<ConfigField> fields = data_fields();
  for (ConfigField& field : model_fields()) fields.push_back(std::move(field));
  for (ConfigField& field : loss_fields()) fields.push_back(std::move(field));
  fields.push_back({"train.curriculum",
                    [](Config& config) -> ConfigPlace { return &peptide_keys(config).curriculum; },
                    {},
                    {"none", "default", "long"},
                    "stages of growing difficulty: of 50 000 steps, of 100 000 steps, or none"});
  fields.push_back(
      {"train.curriculum_stages",
       [](Config& config) -> ConfigPlace { return &peptide_keys(config).curriculum_stages; },
       {},
       {},
       "a curriculum of one's own: {steps, max_length, noise_peaks, spectrum_weight, ...} each",
       true,
       false,
       {},
       "[{steps: 5000, max_length: 8}, {steps: 10000, max_length: 12, noise_peaks: 10}]"});
  for (ConfigField& field : fields) field.models = {"peptide"};
  mark(fields, &ConfigField::is_size,
       {"model.hidden_dim", "model.num_encoder_layers", "model.num_decoder_layers",
        "model.max_peaks"});
  mark(fields, &ConfigField::is_taken,
       {"data.charge_distribution", "data.modifications", "train.curriculum_stages"});
  return fields;
}

void check(const ConfigCheck& check) {
  if (check.config().model.name != "peptide") return;
  const PeptideKeys& keys = peptide_keys(check.config());
  check.together(keys.model.hidden_dim % keys.model.num_heads == 0, "model.hidden_dim",
                 "is not a multiple of", "model.num_heads");
  check.together(keys.model.hidden_dim % 2 == 0, "model.hidden_dim",
                 "is odd, which the mass embedding does not go with:", "model.max_mass");
  check.together(keys.data.min_length <= keys.data.max_length, "data.min_length", "is above",
                 "data.max_length");
  check.together(keys.curriculum == "none" || keys.curriculum_stages.empty(), "train.curriculum",
                 "does not go with", "train.curriculum_stages");
}

LeastMemory least_memory_of(const Config& config) {
  const PeptideKeys::Model& model = peptide_keys(config).model;
  const auto width = static_cast<double>(model.hidden_dim);
  const auto rows = static_cast<double>(std::max<int64_t>(1, config.train.batch_size));
  LeastMemory least;
  least.parameters =
      static_cast<double>(model.num_encoder_layers + model.num_decoder_layers) * 4 * width * width;
  least.batch_bytes = 8 * rows;  // m/z and intensity of one peak: more are not known of
  return least;
}

void add_commands(Command root) {
  add_predict_command(root);
  add_peptide_command(root);
}

// Masses have more digits than a low type: of 1000 Da bf16 knows 4.
void set_compile_options(const Config&, CompileOptions& options) {
  for (const char* scope : {"loss", "peak_mass", "precursor_mass"})
    options.fp32_scopes.emplace_back(scope);
}

const WorkloadRegistrar kPeptide{{.name = "peptide",
                                  .keys = {.models = {"peptide"},
                                           .fields = fields,
                                           .check = check,
                                           .least_memory = least_memory_of},
                                  .open = peptide_workload,
                                  .add_commands = add_commands,
                                  .add_eval = add_peptide_eval,
                                  .quality = peptide_quality,
                                  .set_compile_options = set_compile_options}};

}  // namespace

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/optim/parameter_groups.h"
#include "fullbore/optim/plateau.h"
#include "fullbore/optim/schedule.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

/// Dynamic loss scaling, for gradients that fp16 would flush to zero: Micikevicius et al. 2018,
/// arXiv:1710.03740, section 3.2.
struct LossScaling {
  double initial = 0;    ///< first scale; 0: none
  double growth = 2;     ///< factor after `interval` finite steps in a row
  double backoff = 0.5;  ///< factor after a step that is not finite
  int64_t interval = 2000;
};

/// Two sets of parameters whose gradient norms are compared, by patterns of names as ParameterGroup has them.
struct GradientRatio {
  std::string name;  ///< of the metric
  std::string numerator;
  std::string denominator;
};

/// What of the optimizer is stored in less than f32.
struct StorageOptions {
  std::string moments = "f32";  ///< one of moment_storages() (stored_moment.h)
  /// Parameters are f32. Without, those of rank >= 2 hold values that bf16 has: who keeps them may store them so.
  bool master_weights = true;
  bool stochastic =
      true;  ///< what is rounded to bf16 is so by draws (rounding.h); false: to nearest even
};

struct OptimizerOptions {
  std::string name = "adamw";  ///< one of optimizer_names()
  ScheduleOptions schedule = {};
  PlateauOptions plateau = {};  ///< of the schedule "plateau"
  double beta1 = 0.9;           ///< adamw, lion
  double beta2 = 0.999;         ///< adamw, lion
  double epsilon = 1e-8;
  double momentum = 0.9;       ///< sgd, muon
  bool nesterov = false;       ///< sgd, muon
  double weight_decay = 0.01;  ///< of matrices and tables (rank >= 2) only, unless a group says so
  bool decays_all = false;     ///< vectors and scalars too
  double clip_norm = 1.0;      ///< largest global gradient norm; 0: no clipping
  double clip_value = 0;       ///< largest magnitude of a gradient's element; 0: no clipping
  double ema_decay = 0;        ///< of the exponential moving average of the weights; 0: none
  bool ema_warms_up = true;
  std::vector<ParameterGroup> groups = {};
  std::string norms = "off";  ///< further results: "groups" or "parameters"
  std::vector<GradientRatio> ratios = {};
  LossScaling loss_scaling = {};
  bool adjustable = false;  ///< the rate is multiplied by State kRateFactor, f64[], 1 at first
  StorageOptions storage = {};
  bool noise_scale = false;  ///< whoever traces the loss shall call optimize_halves
  /// Whoever traces the step shall make matmuls of weights products of 8-bit floats (train/fp8_matmuls.h).
  bool fp8_matmuls = false;
  std::vector<std::string> fp8_excluded =
      {};  ///< modules whose matmuls stay as they are, by patterns
};

/// The name of the State that OptimizerOptions::adjustable makes: the host's to write.
inline constexpr const char* kRateFactor = "learning_rate_factor";

const std::vector<std::string>& optimizer_names();

struct OptimizerResult {
  Tensor learning_rate;  ///< f32[], of this step
  Tensor gradient_norm;  ///< f32[], global, before clipping
  Tensor skipped;        ///< f32[], 1 if loss or gradient norm is not finite, else 0
  /// Further f32 scalars, by name: what `norms` and `ratios` ask for, the gradient noise scale.
  std::vector<std::pair<std::string, Tensor>> metrics;
};

/// Appends the rest of the training step to the trace: gradients of `loss` by every parameter,
/// clipping, the optimiser's rule on each parameter (update_rules.h), the moving average, and the
/// counters. The host reads nothing.
///
/// Clipping: elements to [-clip_value, clip_value] first, then the factor min(1, clip_norm / (norm +
/// 1e-6)) of the global norm. muon updates matrices; what is no matrix, or is a table (rows of it
/// are gathered), goes by AdamW with the same rate and decay, unless a group's `algorithm` differs.
///
/// Not finite: if the loss or the global gradient norm is not finite, `skipped` is 1 and every
/// parameter, moment, average and the counter `updates` keep their bits: values are selected, there
/// is no branch. `updates` (i64) counts the updates made, and drives schedule and bias corrections;
/// `step` (i64) counts replays, skipped ones included, and drives random draws.
///
/// Loss scaling: State `loss_scale` (f32) multiplies the loss before it is differentiated and divides
/// the gradients after; `finite_steps` (i64) counts since it last changed. A step in which it was too
/// large is skipped like any other that is not finite. The result `loss_scale` is the step's.
///
/// Storage: moments as `storage` has them. Draws are of State `random.seed` and `step` and of the parameter's place among
/// all, so that neither microbatches nor draws of the model change them. The moving average is made of the rounded weights.
///
/// Exponential moving average (EMA): State `<name>.average` of role `ema`, a' = d a + (1 - d) p' with d =
/// ema_decay or, where it warms up, min(ema_decay, (1 + t) / (10 + t)), t the updates made before; it starts as
/// the parameter does.
///
/// Norms: `gradient_norm/<key>` (before clipping) and `parameter_norm/<key>` (before the update) per
/// group (its pattern, "others") or per parameter; with "off" nothing of them is in the graph.
///
/// Ratios: `<name>`, the global norm of the one set's gradients by that of the other's, before clipping; where the
/// latter is below 1e-10 it is 1 if the former is too, else infinite. `<name>/per_parameter`: the same of root mean
/// squares. UsageError for a set without parameters.
OptimizerResult optimize(Trace& trace, Tensor loss, const OptimizerOptions& options);

/// The same from the losses of the two halves of a batch of `batch_size` examples: the gradients are
/// averaged, and the metric `gradient_noise_scale` is added (gradient_statistics.h).
OptimizerResult optimize_halves(Trace& trace, Tensor first_loss, Tensor second_loss,
                                int64_t batch_size, const OptimizerOptions& options);

/// A loss, and the gradients of that loss times a scale by each of trace.parameters().
struct ScaledGradients {
  Tensor loss;
  std::vector<Tensor> gradients;
};
/// The same where the caller differentiates, say in parts: `differentiate` is given the scale, f32[], or
/// an empty tensor for 1.
OptimizerResult optimize_gradients(
    Trace& trace, const std::function<ScaledGradients(Tensor scale)>& differentiate,
    const OptimizerOptions& options);

/// The name of a parameter's moving average.
std::string ema_name(const std::string& parameter);

}  // namespace fullbore

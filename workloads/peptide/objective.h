#pragma once
#include <span>
#include <string>
#include <vector>

#include "workloads/peptide/losses.h"
#include "workloads/peptide/recursive_model.h"

namespace fullbore::peptide {

enum class SpectrumTerm : uint8_t { window_huber, window_l1, coverage, rendered };

/// What the training makes small: ce_weight * sum_t w_t CE_t + spectrum_weight * spectrum term +
/// precursor_weight * precursor term; the last two of the last answer, in f32.
struct ObjectiveOptions {
  LossMasses masses;
  int32_t end = 2;            ///< id of the end mark
  bool sequence_ends = true;  ///< targets have a start and an end mark
  AnswerWeights answers = AnswerWeights::linear;
  double label_smoothing = 0;
  double ce_weight = 1;
  SpectrumTerm spectrum = SpectrumTerm::window_huber;
  double sigma = 0.2;         ///< Da, of coverage and rendered
  bool spectrum_used = true;  ///< is its weight ever above 0? Else it is a metric only
  PrecursorPenalty precursor = PrecursorPenalty::smooth_l1;
  bool precursor_used = false;
  bool mask_padding = true;
};

/// Factors that the batch brings along, for they change with the curriculum: f32 [].
struct TermWeights {
  Tensor spectrum;
  Tensor precursor;  ///< none: 0
};

/// A named scalar f32 [], with what it is the mean of (f32 []; none: the slots that count).
struct NamedScalar {
  std::string name;
  Tensor value;
  Tensor weight = {};
};

struct Objective {
  Tensor loss;   ///< f32 []
  Tensor slots;  ///< f32 [], how many count
  std::vector<CountedMean>
      terms;  ///< whose sum the loss is: of slots, of matched ions or spectra, of spectra
  /// ce_step_<t>, ce_final, spectrum_loss, precursor_loss, token_accuracy, sequence_accuracy, mean_mass_error_ppm,
  /// flip_rate_<t>, and token_accuracy_<t> of every answer.
  std::vector<NamedScalar> metrics;
};

Objective objective(const Answers& answers, const Spectra& spectra, const Targets& targets,
                    const TermWeights& weights, const ObjectiveOptions& options);

/// How good answers are: what Objective::metrics has, without the losses.
std::vector<NamedScalar> answer_metrics(Tensor logits, const Targets& targets,
                                        Tensor precursor_mass, const ObjectiveOptions& options);

}  // namespace fullbore::peptide

#pragma once
#include <string>
#include <vector>

#include "fullbore/ops/ops.h"

namespace fullbore::peptide {

/// Masses that predicted ions are made of, in Da.
struct LossMasses {
  std::vector<double> symbols;  ///< by id; 0 of symbols that are no residue
  double water = 0;
  double proton = 0;
  double carbon_monoxide = 0;
};

/// What is to be predicted. Dims: B spectra, S slots, P peaks.
struct Targets {
  Tensor ids;                 ///< i32 [B,S]
  Tensor mask;                ///< bool [B,S]: the slots that count
  bool sequence_ends = true;  ///< the first slot and the last that counts are marks, not residues
};

/// How the answers' losses are weighted: t + 1, 1 or exp(t / 2) for answer t, divided by their sum.
enum class AnswerWeights : uint8_t { linear, uniform, exponential };
std::vector<double> answer_weights(AnswerWeights weights, int64_t answers);

/// Cross-entropy of every answer, each the mean over all slots that count: logits [T,B,S,V] -> [T].
Tensor answer_cross_entropy(Tensor logits, const Targets& targets, double label_smoothing);

/// Peaks and the precursor. A row whose mass is 0 is no spectrum, and counts for nothing; no spectra, no loss.
struct Observed {
  Tensor mz;         ///< f32 [B,P]
  Tensor intensity;  ///< f32 [B,P]
  Tensor mask;       ///< bool [B,P]
  Tensor mass;       ///< f32 [B], of the precursor, neutral
};

/// A mean, and of how many: both f32 []. The whole batch's is that of its parts by their counts.
struct CountedMean {
  Tensor mean;
  Tensor count;
};

/// A prediction's expected masses: probabilities [B,S,V] times the symbols' masses -> [B,S], zero behind the end where
/// padding is masked.
Tensor expected_masses(Tensor probabilities, const Targets& targets, const LossMasses& masses,
                       bool mask_padding);

/// How far a predicted ion is from peaks: distance d in Da up to the window of 0.5.
enum class WindowPenalty : uint8_t {
  absolute,  ///< d
  huber      ///< d^2 / 2 up to 0.2, then 0.2 (d - 0.1)
};
/// Every a, b and y ion of the residues is compared with the peaks within 0.5 Da, by a softmax over -d / 0.1:
/// mean penalty times mean intensity, over the ions that have any such peak in the whole batch, which are what is
/// counted; 0 where none has. A prediction without any match costs nothing: never to be used alone.
CountedMean window_loss(Tensor expected, const Observed& observed, const Targets& targets,
                        const LossMasses& masses, WindowPenalty penalty);

/// The mean over spectra of the share of intensity that b and y ions, of charges 1 and 2, leave unexplained: each peak
/// is explained by its nearest ion, as exp(-(distance / sigma)^2 / 2). sigma in Da.
CountedMean coverage_loss(Tensor expected, const Observed& observed, const Targets& targets,
                          const LossMasses& masses, double sigma);

/// The mean over spectra of 1 - the cosine of two spectra drawn as Gaussians of width sigma (Da): the peaks, and the same ions of height 1.
/// The inner product of two Gaussians at a distance is a Gaussian of it, so nothing is rendered.
CountedMean rendered_loss(Tensor expected, const Observed& observed, const Targets& targets,
                          const LossMasses& masses, double sigma);

enum class PrecursorPenalty : uint8_t {
  smooth_l1,  ///< of (predicted - observed) / 110 Da, quadratic up to 0.1
  log_ppm     ///< log(1 + error in ppm / 1e5)
};
/// Mean over spectra of how far the predicted mass is from the precursor's.
CountedMean precursor_loss(Tensor expected, const Observed& observed, const LossMasses& masses,
                           PrecursorPenalty penalty);

}  // namespace fullbore::peptide

#pragma once
#include <cstdint>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore::peptide {

/// Sizes of the recursive model. Dims: B spectra, P peaks, L = P + 1, S slots of an answer, V symbols, H channels, T
/// supervision steps.
struct ModelSizes {
  int64_t width = 256;   ///< H, at least 34
  int64_t symbols = 24;  ///< V
  int64_t slots = 25;    ///< S
  int64_t heads = 4;     ///< of every attention
  int64_t encoder_layers = 2;
  int64_t decoder_layers = 2;
  int64_t supervision_steps = 8;  ///< T, answers
  int64_t latent_steps = 4;       ///< n, thoughts before each answer
  double max_mass =
      2000;  ///< longest wavelength of peaks' embedding in Da; of precursors 1.5 times that
  double dropout = 0;
  bool step_embedding = false;  ///< what enters the core tells which answer it works on
  bool gated_answer = false;    ///< an answer is a mixture with the one before
  bool precursor_mz = false;    ///< the encoder is told mass over charge, not the neutral mass
};

/// What the model sees of spectra.
struct Spectra {
  Tensor mz;                ///< f32 [B,P], Da per charge
  Tensor intensity;         ///< f32 [B,P], not negative
  Tensor peak_mask;         ///< bool [B,P]: where there is a peak
  Tensor precursor_mass;    ///< f32 [B], neutral, Da
  Tensor precursor_charge;  ///< i32 [B], 1 to 6
};

struct Answers {
  Tensor logits;  ///< f32 [T,B,S,V]; the last is the answer
  Tensor latent;  ///< f32 [B,S,H], the last thought
};

/// A spectrum encoder (pre-norm transformer over a precursor token and the peaks, in any order) and a decoder of few
/// layers that is iterated: n times to refine a latent, once to turn it into an answer, T times over. Nothing is
/// detached: gradients reach the encoder through every answer.
/// After Jolicoeur-Martineau 2025, arXiv:2510.04871 ("Tiny Recursive Model"), with deep supervision (Lee et al. 2015,
/// arXiv:1409.5185). Peaks of padding influence nothing. Throws UsageError where sizes do not go together.
Answers recursive_model(Trace& trace, const Spectra& spectra, const ModelSizes& sizes);

/// The embedding of masses [...] in Da -> [..., 2 K]: sines, then cosines of K frequencies from 1 to 20000 per
/// `longest` Da, in equal ratios; times a learned `<name>.scale`. Phases are reduced in f32 before their sines are
/// taken: the highest is 1e5 radians. Vaswani et al. 2017, arXiv:1706.03762, section 3.5, for masses.
Tensor mass_embedding(Trace& trace, const char* name, Tensor mass, int64_t channels,
                      double longest);

}  // namespace fullbore::peptide

#pragma once
#include <cstdint>
#include <string>

#include "fullbore/trace/trace.h"

namespace fullbore::latentwire {

/// From slots of the wire to vectors in the embedding space of one language model.
struct AdapterSizes {
  int64_t width = 0;  ///< d, of the language model
  int64_t refiner =
      0;  ///< layers that the slots go through first, with 4 heads and a norm behind them
  bool length_hint =
      false;  ///< adds tanh(W_l length / most) of a length that the user asks for, never of the answer's
  bool colour =
      false;  ///< results have the mean and deviation of the model's embeddings, by channel
};

/// What an adapter reads beside the slots; empty where it does not.
struct AdapterInputs {
  Tensor length_share = {};  ///< f32 [B]: length / most
  Tensor mean = {};          ///< f32 [d], of the embedding table by channel, with colour
  Tensor deviation = {};     ///< f32 [d]
};

struct AdapterOutput {
  Tensor prefix;  ///< [B,M,d], not yet calibrated
  Tensor scale;   ///< f32 []: the parameter s
};

/// slots [B,M,C] -> [B,M,d], under the scope `name`:
///
///   z' = z + P;  x = norm(z');  y = W_o GELU(W_m GELU(W_a x)) + W_s x
///   y = y sigmoid(W_f z') + W_g z';  prefix = s norm(y)
///
/// with inner widths of 2 C and s = 1 at first. Modulation: Perez et al. 2018, arXiv:1709.07871.
AdapterOutput adapt_slots(Trace& trace, const std::string& name, Tensor slots,
                          const AdapterSizes& sizes, const AdapterInputs& inputs = {});

/// y [B,M,d] with the root mean square of each row's M d numbers set to `target`, f32 []: y target / rms(y). A row of
/// zeros stays zeros. Its gradient is orthogonal to each row, so that no loss behind it moves a factor of y.
Tensor calibrate(Tensor y, Tensor target);
/// f32 [B]: sqrt(mean(y^2)) of each row.
Tensor row_rms(Tensor y);

}  // namespace fullbore::latentwire

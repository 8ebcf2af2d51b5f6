#pragma once
#include <array>
#include <string>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore::energy_flow {

/// Of y = x weight^T + bias: weight [out, in], bias [out].
struct LinearWeights {
  Tensor weight;
  Tensor bias;
};
/// Scale and shift [channels] of a layer norm.
struct NormWeights {
  Tensor scale;
  Tensor shift;
};

/// Weights are cast to x's dtype where they have another.
Tensor apply_linear(Tensor x, const LinearWeights& weights);
Tensor apply_norm(Tensor x, const NormWeights& weights);

/// Declares weights, f32, under the trace's scope: as parameters, or as State that is kept with them and never trained.
class WeightDeclarer {
 public:
  explicit WeightDeclarer(Trace& trace, bool trained = true) : trace_(trace), trained_(trained) {}

  Tensor tensor(const std::string& name, Shape shape, Initializer initializer) const;
  /// `<name>.weight` normal with this deviation, and `<name>.bias`.
  LinearWeights linear(const std::string& name, int64_t outputs, int64_t inputs, double deviation,
                       const Initializer& bias = Initializer::zeros()) const;
  /// He et al. 2015, arXiv:1502.01852, with fan-out and gain sqrt 2.
  LinearWeights he_linear(const std::string& name, int64_t outputs, int64_t inputs) const;
  /// Glorot, Bengio 2010, the normal form.
  LinearWeights glorot_linear(const std::string& name, int64_t outputs, int64_t inputs,
                              const Initializer& bias = Initializer::zeros()) const;
  /// `<name>.weight` ones, `<name>.bias` zeros.
  NormWeights norm(const std::string& name, int64_t channels) const;
  Trace& trace() const { return trace_; }

 private:
  Trace& trace_;
  bool trained_;
};

}  // namespace fullbore::energy_flow

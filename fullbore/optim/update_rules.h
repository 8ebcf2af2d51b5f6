#pragma once
#include <functional>
#include <string>

#include "fullbore/optim/stored_moment.h"

namespace fullbore {

/// What an update rule may know: constants of the run and scalars of this step.
struct UpdateContext {
  Trace& trace;
  Tensor rate;   ///< f64[], of this step, before a group's multiplier
  Tensor count;  ///< f64[], updates made, this one included
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
  std::string moments = "f32";  ///< how they are stored (stored_moment.h)
  StoredMoment::Keep keep;
};

/// One parameter, with its gradient (clipped) and what its group says.
struct ParameterUpdate {
  std::string name;
  Shape shape;
  Tensor
      value;  ///< f32, of `shape` or of as many elements: [blocks, block] where moments are in blocks
  Tensor gradient;  ///< of the same type
  double weight_decay = 0;
  double learning_rate_multiplier = 1;
  /// Of moment 1 or 2 in bf16: uniform in [0, 1), f32, of value's shape. None: they are rounded to nearest.
  std::function<Tensor(int moment)> draw = {};
};

/// Each returns the parameter's new value, of value's type, and keeps its moments as State `<name>.moment1`, ... .
/// With rate = the step's times the multiplier, g the gradient, p the parameter:

/// Momentum SGD. d = g + decay p;  m' = momentum m + d;  p' = p - rate (nesterov ? d + momentum m'
/// : m'). Without momentum there is no State. The decay is an L2 term, as in PyTorch's SGD; with
/// plain SGD it is the same as a decoupled one. Sutskever et al. 2013, section 2.
Tensor sgd_update(const UpdateContext& context, const ParameterUpdate& parameter);

/// Loshchilov, Hutter 2019, arXiv:1711.05101, algorithm 2, with t = count.
///   m' = beta1 m + (1 - beta1) g          v' = beta2 v + (1 - beta2) g^2
///   p' = p (1 - rate decay) - rate / (1 - beta1^t) * m' / (sqrt(v' / (1 - beta2^t)) + epsilon)
Tensor adamw_update(const UpdateContext& context, const ParameterUpdate& parameter);

/// Chen et al. 2023, arXiv:2302.06675, algorithm 2.
///   p' = p (1 - rate decay) - rate sign(beta1 m + (1 - beta1) g)      m' = beta2 m + (1 - beta2) g
Tensor lion_update(const UpdateContext& context, const ParameterUpdate& parameter);

/// Muon, for matrices [R,C]: momentum made nearly orthogonal by five Newton-Schulz steps.
///   m' = momentum m + (1 - momentum) g;   u = nesterov ? momentum m' + (1 - momentum) g : m'
///   p' = p (1 - rate decay) - rate 0.2 sqrt(max(R, C)) orthogonal(u)
/// The factor gives an update the root mean square that AdamW's typically has, so that one learning
/// rate serves both. Jordan et al. 2024, kellerjordan.github.io/posts/muon; Liu et al. 2025,
/// arXiv:2502.16982, section 2.2.
Tensor muon_update(const UpdateContext& context, const ParameterUpdate& parameter);

/// Five steps of the quintic iteration X' = a X + (b A + c A^2) X, A = X X^T, (a, b, c) = (3.4445,
/// -4.7750, 2.0315), from x / (|x| + 1e-7): singular values end in about [0.7, 1.2]. x [R,C] f32.
Tensor orthogonalize(Tensor x);

}  // namespace fullbore

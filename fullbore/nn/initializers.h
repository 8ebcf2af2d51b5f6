#pragma once
#include "fullbore/trace/trace.h"

/// Initialisations by PyTorch's names. fan_in and fan_out: terms of a sum, and sums that an element is in; of a convolution
/// [O,C/groups,*K] K C/groups and K O/groups.
namespace fullbore::nn {

/// Uniform in +-gain sqrt(3 / fan_in), gain = sqrt(2 / (1 + a^2)): He et al. 2015, arXiv:1502.01852, section 2.2. The
/// default a, sqrt(5), is that of PyTorch's linear and convolution layers: +-1 / sqrt(fan_in).
Initializer kaiming_uniform(int64_t fan_in, double a = 2.23606797749979);
/// Normal of deviation gain / sqrt(fan_in).
Initializer kaiming_normal(int64_t fan_in, double a = 0);
/// Uniform in +-gain sqrt(6 / (fan_in + fan_out)), normal of deviation gain sqrt(2 / (fan_in + fan_out)): Glorot, Bengio
/// 2010, section 4.2.1.
Initializer xavier_uniform(int64_t fan_in, int64_t fan_out, double gain = 1);
Initializer xavier_normal(int64_t fan_in, int64_t fan_out, double gain = 1);

}  // namespace fullbore::nn

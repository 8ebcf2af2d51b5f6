#pragma once

namespace fullbore {

/// Distributions of means whose spread is estimated from the same values, in double. Source: Abramowitz, Stegun 1964,
/// chapter 26; NIST Digital Library of Mathematical Functions, section 8.17.

/// Regularized incomplete beta function I_x(a, b): a, b > 0, x in [0, 1]. To about 1e-13 of the result.
double incomplete_beta(double a, double b, double x);

/// P(T > t) of Student's t with `freedom` > 0 degrees of freedom; small tails keep their digits. NaN of NaN.
double student_upper_tail(double t, double freedom);

/// The t whose upper tail is `tail`, in (0, 1): 2.132 of 0.05 and 4.
double student_critical(double tail, double freedom);

/// P(T' > t), where T' = (Z + shift) / sqrt(chi^2 / freedom), noncentral: the power of a test. To about 1e-7.
double noncentral_upper_tail(double t, double freedom, double shift);

}  // namespace fullbore

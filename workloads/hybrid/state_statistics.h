#pragma once
#include <cstdint>
#include <span>
#include <vector>

/// Figures of what a recurrent model remembers, out of the values of its states.
namespace fullbore {

double norm_of(std::span<const float> values);
/// 0 where one of them is zero.
double cosine_of(std::span<const float> a, std::span<const float> b);
/// Mean over the elements of their variance across the rows, which are of the same length.
double variance_across(std::span<const std::span<const float>> rows);
/// Of magnitude above `bound`.
double share_beyond(std::span<const float> values, double bound);
/// Share of the `count` largest singular values of the matrix in the sum of all; 0 for a matrix of zeros. One-sided
/// Jacobi rotations (Hestenes 1958, doi:10.1137/0106005).
double top_singular_share(std::span<const float> matrix, int64_t rows, int64_t columns,
                          int64_t count);
/// Energy of the series' frequencies below a quarter of the sampling rate by that of those above; its mean counts for
/// nothing. 0 for a series of fewer than 4 values, infinite where there is no energy above.
double low_by_high_frequencies(std::span<const double> series);

}  // namespace fullbore

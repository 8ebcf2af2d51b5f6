#pragma once
#include <cmath>
#include <vector>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// Adds terms to the elements of one result for the references of both scatters, and keeps count
/// for their magnitudes.
class ScatterSums {
 public:
  explicit ScatterSums(Literal& y)
      : y_(y), terms_(y.reals().size(), 0), magnitudes_(y.reals().size(), 0) {}

  void add(int64_t to, const Literal& updates, int64_t from) {
    const auto i = static_cast<size_t>(to);
    const auto j = static_cast<size_t>(from);
    if (!y_.floating()) {
      // Unsigned, for integers wrap by definition.
      y_.integers()[i] = static_cast<int64_t>(static_cast<uint64_t>(y_.integers()[i]) +
                                              static_cast<uint64_t>(updates.integers()[j]));
      return;
    }
    y_.reals()[i] += updates.reals()[j];
    magnitudes_[i] += std::abs(updates.reals()[j]);
    terms_[i] += 1;
  }

  /// The magnitudes; integers get their dtype's width instead.
  std::vector<std::vector<double>> finish() {
    if (!y_.floating()) {
      y_.round();
      return {};
    }
    for (size_t i = 0; i < terms_.size(); ++i) magnitudes_[i] *= terms_[i];
    return {std::move(magnitudes_)};
  }

 private:
  Literal& y_;
  std::vector<double> terms_;
  std::vector<double> magnitudes_;
};

/// One addition per update.
Cost scatter_cost(const CostCall& call);

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fullbore {

/// How the coefficient of a penalty follows what is penalised, step by step, so that it stays near a target.
enum class PenaltyControl : uint8_t {
  none,    ///< as it was set
  step,    ///< x 1.1 above 1.5 targets, x 0.9 below half of one
  window,  ///< x 1.5 above two targets, x 0.8 below half of one, by the mean of the last 100
  proportional,  ///< x (1 + 0.1 clip(value / target - 1, +-0.2)): Ziegler et al. 2019, arXiv:1909.08593, section 2.2
  exponential  ///< x exp(clip(value / target - 1, +-0.2))
};
/// "none", "step", ...; nothing of another name.
std::optional<PenaltyControl> parse_penalty_control(std::string_view name);

struct PenaltyOptions {
  PenaltyControl control = PenaltyControl::none;
  double initial = 0.01;
  double target = 0.04;
  int64_t warmup = 0;  ///< steps in which nothing is penalised
};

/// The coefficient, within [0.001, 1] where it is controlled. All that it knows is one array, so that it can be kept in State.
class PenaltyController {
 public:
  static constexpr int64_t kWindow = 100;
  static constexpr int64_t kNumbers = kWindow + 3;

  explicit PenaltyController(const PenaltyOptions& options);
  /// Goes on from numbers() of another.
  void restore(std::span<const double> numbers);
  const std::vector<double>& numbers() const { return numbers_; }

  /// Of the next step; 0 during the warm-up.
  double coefficient() const;
  /// A step was made, and `value` was what is penalised. What is not finite is passed over.
  void observe(double value);

 private:
  double& current() { return numbers_[0]; }
  double& observed() { return numbers_[1]; }  ///< how many
  double window_mean();

  PenaltyOptions options_;
  std::vector<double> numbers_;  ///< coefficient, values seen, steps made, the last values
};

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fullbore::long_context {

/// Of values as they come; 0 of none.
struct Mean {
  double sum = 0;
  int64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

/// A share of successes, and how sure it is.
struct Interval {
  double low = 0;
  double high = 1;
};
/// Wilson's score interval of 95 % for `successes` of `trials`; [0, 1] of none.
/// Source: Wilson 1927, J. Am. Stat. Assoc. 22, p. 209.
Interval wilson_interval(int64_t successes, int64_t trials);

/// Accuracy at a length.
struct LengthAccuracy {
  int64_t length = 0;
  double accuracy = 0;
};

/// Up to which length a model can be relied on.
struct UsableLength {
  double length = 0;      ///< 0: not even the shortest; else where the accuracy falls below
  bool at_least = false;  ///< it never fell: the longest that was measured
};
enum class Interpolation : uint8_t { logarithmic, linear };
/// Where the accuracy falls below `threshold` for the first time, scanning upward, interpolated between
/// the two lengths beside. `accuracies` ascend in length and are not empty.
UsableLength usable_length(std::span<const LengthAccuracy> accuracies, double threshold,
                           Interpolation interpolation = Interpolation::logarithmic);

/// What a grid's accuracies say, one warning each.
struct RetrievalFlags {
  std::optional<LengthAccuracy> below_at_claimed;  ///< under 80 % at the claimed length
  /// Middle depths (25 to 75 %) worse than the ends by more than 10 points, at this length; the
  /// accuracies of the ends and of the middle.
  struct Sag {
    int64_t length;
    double ends;
    double middle;
  };
  std::vector<Sag> lost_in_the_middle;
  bool multi_needle_below_half = false;
};
struct DepthAccuracy {
  int64_t length = 0;
  double depth = 0;  ///< 0 to 1
  double accuracy = 0;
};
/// `claimed_length`: 0 where nobody claims one.
RetrievalFlags retrieval_flags(std::span<const DepthAccuracy> cells, int64_t claimed_length,
                               bool multi_needle);

/// The suite goes in phases: 1 needles from 1K to 16K, 2 LongBench from 50K to 100K, 3 InfiniteBench
/// from 100K to 200K. A phase is begun where the gate before it is passed.
enum class Gate : uint8_t { not_measured, failed, passed };
std::string_view gate_name(Gate gate);
/// Above 80 % at 16K, counting the longest length of [16000, 16384].
Gate needle_gate(std::span<const LengthAccuracy> accuracies);
/// A mean token F1 above 0.6 over items of [90K, 110K] tokens. `items`: how many there are.
Gate longbench_gate(double mean_f1, int64_t items);

}  // namespace fullbore::long_context

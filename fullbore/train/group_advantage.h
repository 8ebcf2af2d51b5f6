#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fullbore {

/// What the rewards of completions say of each of them, beside the others of its group: those of the same prompt.
enum class Advantage : uint8_t {
  centred,  ///< r - mean
  sample,  ///< (r - mean) / (s + 1e-4), s of n - 1: Shao et al. 2024, arXiv:2402.03300, section 4.1.2
  population,  ///< the same with s of n
  batch,       ///< (r - mean) / (s + 1e-4), s of r - mean in all groups, n - 1
  leave_one  ///< r - mean of the others: Ahmadian et al. 2024, arXiv:2402.14740, section 2.2 (RLOO)
};
/// "centred", "sample", ...; nothing of another name.
std::optional<Advantage> parse_advantage(std::string_view name);

/// Rewards that differ by less are equal: a group of such says nothing.
inline constexpr double kEqualRewards = 1e-6;

/// Is the standard deviation of the rewards at most kEqualRewards?
bool is_constant(std::span<const double> rewards);

/// Advantages of groups of `size` rewards each, group after group. Exactly 0 in a group of equal rewards, or of one.
std::vector<float> group_advantages(std::span<const double> rewards, size_t size, Advantage kind);

}  // namespace fullbore

#include "fullbore/lab/diagnosis/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/text.h"

namespace fullbore {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string kernel_sentence(const AttributionRow& row, double share) {
  if (!(row.roofline_seconds > 0))
    return fmt::format("{} takes {} of the time.", row.what, percent(share));
  const bool memory = row.memory_seconds > 0.5 * row.roofline_seconds;
  return fmt::format("{} kernels take {} of the time, at {:.0f} % of what the machine's {} allows.",
                     row.what, percent(share), 100 * row.roofline_seconds / row.seconds,
                     memory ? "memory bandwidth" : "arithmetic");
}

}  // namespace

std::vector<Advice> advise(const RunFacts& facts) {
  std::vector<Advice> advice;
  for (const std::span<const AdviceRule> rules : {compile_rules(), speed_rules(), learning_rules()})
    for (const AdviceRule& rule : rules) {
      const size_t before = advice.size();
      rule.apply(facts, advice);
      for (size_t i = before; i < advice.size(); ++i) advice[i].rule = rule.name;
    }
  const auto gain = [](const Advice& each) { return std::isnan(each.gain) ? -1 : each.gain; };
  std::ranges::stable_sort(advice, std::greater<>(), gain);
  return advice;
}

std::string bottleneck(const RunFacts& facts) {
  const Attribution& whole = facts.whole;
  const auto longest = std::ranges::max_element(whole.rows, {}, &AttributionRow::seconds);
  if (longest == whole.rows.end() || whole.wall_seconds <= 0) return "Nothing was measured.";
  const double start = whole.seconds(RunPhase::start);
  const double share = longest->seconds / whole.wall_seconds;
  if (longest->phase == RunPhase::start || start > longest->seconds)
    return fmt::format("The start takes {} of the time, {}.", percent(start / whole.wall_seconds),
                       duration_text(start));
  switch (longest->phase) {
    case RunPhase::data:
      return fmt::format("The input: the loop waits {} of the time for batches.", percent(share));
    case RunPhase::rollouts:
      return fmt::format("Rollouts: making batches takes {} of the time.", percent(share));
    case RunPhase::evaluation:
      return fmt::format("Evaluations take {} of the time.", percent(share));
    case RunPhase::checkpoint:
      return fmt::format("Saving holds the loop up for {} of the time.", percent(share));
    case RunPhase::host:
      return fmt::format("The host: lines, metrics and checks take {} of the time.",
                         percent(share));
    case RunPhase::start:
    case RunPhase::step: break;
  }
  if (longest->what == kIdle)
    return fmt::format("Gaps: for {} of the time no kernel runs.", percent(share));
  return kernel_sentence(*longest, share);
}

}  // namespace fullbore

// Advice on how a run was compiled.
#include <fmt/format.h>

#include <array>

#include "fullbore/lab/diagnosis/advice.h"

namespace fullbore {
namespace {

void kernels_are_missing(const RunFacts& facts, std::vector<Advice>& advice) {
  if (facts.fallbacks.empty()) return;
  const KernelFallback& first = facts.fallbacks.front();
  const size_t others = facts.fallbacks.size() - 1;
  const std::string location = first.location.empty() ? "" : fmt::format(" ({})", first.location);
  advice.push_back(
      {.finding =
           fmt::format("{}{} has no kernel and runs its op's reference: {}{}", first.node, location,
                       first.reason, others > 0 ? fmt::format("; and {} more nodes", others) : ""),
       .change = "another dtype or op there; if the reason is LLVM's, another LLVM, or a report"});
}

void compiles_less(const RunFacts& facts, std::vector<Advice>& advice) {
  const std::string& effort = facts.config.engine.compile;
  if (effort == "full") return;
  // A short run is over before faster steps have made up for a longer start.
  const bool pays = effort == "off" ||
                    facts.whole.seconds(RunPhase::step) > 10 * facts.whole.seconds(RunPhase::start);
  if (!pays) return;
  advice.push_back({.finding = fmt::format(
                        "engine.compile={}: {}.", effort,
                        effort == "off" ? "every op runs its reference, which is for debugging"
                                        : "steps are slower than they could be, and take far "
                                          "longer than the start"),
                    .change = "engine.compile=full",
                    .undo = "engine.compile=" + effort});
}

constexpr std::array kRules = {
    AdviceRule{"fallback", "a node has no kernel, and its op's reference runs instead",
               kernels_are_missing},
    AdviceRule{"compile", "engine.compile is off, or fast in a run far longer than its start",
               compiles_less},
};

}  // namespace

std::span<const AdviceRule> compile_rules() { return kRules; }

}  // namespace fullbore

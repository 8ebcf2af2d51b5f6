// Whatever subset of the compiler's switches is on, fp32 training is the same to rounding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "fullbore/base/philox.h"
#include "workloads/language/tests/gpt_steps.h"

namespace fullbore {
namespace {

constexpr int kSteps = 10;

/// A subset of the switches, drawn from a seed, and what it is called.
struct Switches {
  explicit Switches(uint64_t seed) {
    PhiloxStream draws(seed);
    const auto coin = [&] { return draws.below(2) == 0; };
    for (const Pass& pass : pipeline())
      if (pass.optional && coin()) {
        options.passes.disabled.insert(std::string(pass.name));
        name += fmt::format("no {}, ", pass.name);
      }
    if (coin()) {
      options.decomposed = {"attention", "attention_gradient", "packed_attention",
                            "packed_attention_gradient"};
      name += "no attention, ";
    }
    options.recompute = coin() ? Recompute::full : Recompute::off;
    options.reuse_memory = coin();
    parts.accumulate = int64_t{1} << draws.below(3);
    parts.parallel = draws.below(2) == 0 ? 1 : 3;
    name += fmt::format("recompute {}, reuse {}, {} parts in {} microbatches",
                        static_cast<int>(options.recompute), options.reuse_memory, parts.accumulate,
                        parts.parallel);
  }
  CompileOptions options;
  Microbatches parts;
  std::string name;
};

TEST(Switches, AnySubsetLeavesTenStepsEqualToRounding) {
  const GptSteps reference = gpt_steps(kSteps, {}, {});
  ASSERT_EQ(reference.losses.size(), size_t{kSteps});
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Switches switches(seed);
    const GptSteps found = gpt_steps(kSteps, switches.parts, switches.options);
    for (size_t i = 0; i < kSteps; ++i) {
      EXPECT_NEAR(found.losses[i], reference.losses[i], 2e-5 * reference.losses[i])
          << "step " << i << ": " << switches.name;
      EXPECT_NEAR(found.norms[i], reference.norms[i], 2e-4 * reference.norms[i])
          << "step " << i << ": " << switches.name;
    }
  }
}

}  // namespace
}  // namespace fullbore

// Any bytes as a sweep's space, or as what it keeps of a run: refused, or trials of as many values as there are settings, each
// within its range.
#include <string>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/base/seal.h"
#include "fullbore/lab/sweep/sweep.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

void draw(const SweepSpace& whole) {
  SweepSpace space = whole;
  space.samples = std::min<int64_t>(space.samples, 50);
  SweepTrials trials;
  try {
    trials = sweep_trials(space);
  } catch (const UsageError&) {
    require(space.method == SweepSpace::Method::grid);
    return;
  }
  for (const std::vector<std::string>& trial : trials) {
    require(trial.size() == space.dimensions.size());
    require(trial_settings(space, trial).size() == space.settings.size() + trial.size());
  }
  const std::vector<int64_t> rounds = sweep_rounds(space, 1000);
  require(!rounds.empty() && rounds.back() == 1000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    draw(parse_sweep_space(text, "space.yaml"));
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).size() > 5);
  }
  require(!parse_sweep_run(text + "x", "run").ok());
  if (!text.empty() && text.back() == '}') (void)parse_sweep_run(seal_json(text), "run").ok();
  return 0;
}

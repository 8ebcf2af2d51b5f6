// Fullbore's side of peers/compare_gpt: bench/support/training_step.h.
#include "bench/support/training_step.h"
#include "workloads/language/gpt_keys.h"

namespace fullbore {
namespace {

bench::Json sizes(const Config& config, const TrainingJob&) {
  const GptKeys& gpt = gpt_keys(config);
  bench::Json json = bench::text_sizes(config);
  json.update({{"bias", gpt.bias ? 1 : 0},
               {"tie_head", gpt.tie_head ? 1 : 0},
               {"activation", gpt.activation}});
  return json;
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  return fullbore::bench::run_training_step(
      argc, argv,
      {.model = "gpt", .check = fullbore::bench::check_text_job, .sizes = fullbore::sizes});
}

// Any bytes as the configuration of a stranger's run of model.name=peptide: refused, or settings of which every text in
// them is refused or understood as a job would.
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/train/stored_config.h"
#include "tests/fuzz/memory_file.h"
#include "workloads/peptide/curriculum.h"
#include "workloads/peptide/peptide_job.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

bool is_share(double value) { return value >= 0 && value <= 1; }

void check_job(const Config& config) {
  const peptide::SyntheticOptions options = peptide_synthetic_options(config);
  for (const auto& [charge, share] : options.charges)
    require(charge >= 1 && charge <= 6 && share >= 0);
  uint64_t first = 0;
  for (const peptide::CurriculumStage& stage : peptide_curriculum(config)) {
    require(stage.first_step >= first && stage.spectra.min_length <= stage.spectra.max_length);
    require(stage.spectra.noise_peaks >= 0 && is_share(stage.spectra.peak_dropout));
    require(stage.spectrum_weight >= 0 && stage.precursor_weight >= 0);
    first = stage.first_step + 1;
  }
  require(peptide_alphabet(config).size() > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  try {
    const Config config = parse_stored_config(yaml, "run/config.resolved.yaml").config;
    if (config.model.name == "peptide") check_job(config);
  } catch (const UsageError& error) {
    require(error.what()[0] != '\0');
  }
  return 0;
}

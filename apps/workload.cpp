#include "apps/workload.h"

#include "fullbore/base/check.h"

namespace fullbore {

Workload open_workload(const Config& config, Console& console, const StandIn& stand_in) {
  if (config.model.name == "peptide") {
    if (stand_in.vocabulary > 0)
      throw UsageError("--vocabulary is for language models; model.name is peptide");
    return peptide_workload(config, console);
  }
  FB_CHECK(config.model.name == "gpt" || config.model.name == "hybrid", "no workload for '{}'",
           config.model.name);
  return language_workload(config, console, stand_in);
}

}  // namespace fullbore

// Any bytes as what an ablation keeps: plan.json, a run's figures, or the output of `plan --json`. Refused, or read such that what
// is written of it reads back equal.
#include <filesystem>
#include <string>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/lab/ablation/ablation_plan.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_folder.h"

using namespace fullbore;
using fullbore::testing::MemoryFolder;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  static const std::string path = folder.path() + "/kept.json";
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse_arm_plan(text);
  require(!parse_ablation_plan(text + "x", path).ok());  // without its checksum
  if (text.empty() || text.back() != '}') return 0;
  const std::string sealed = seal_json(text);
  if (const Result<AblationPlan> plan = parse_ablation_plan(sealed, path); plan.ok()) {
    require(write_ablation_plan(path, plan.value()).ok());
    const Result<AblationPlan> back = read_ablation_plan(path);
    require(back.ok() && back.value().groups == plan.value().groups &&
            back.value().arms.size() == plan.value().arms.size());
  }
  if (const Result<MeasuredRun> run = parse_measured_run(sealed, path); run.ok()) {
    require(write_measured_run(path, run.value()).ok());
    const Result<MeasuredRun> back = read_measured_run(path);
    require(back.ok() && back.value().step_seconds == run.value().step_seconds &&
            back.value().turns == run.value().turns);
  }
  return 0;
}

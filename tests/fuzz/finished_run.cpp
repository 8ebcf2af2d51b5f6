// Any bytes as summary.json and metrics.jsonl of a run: refused with the file's name, or diagnosed within 80 columns, as JSON
// that reads back.
#include "fullbore/lab/diagnosis/finished_run.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/json.h"
#include "fullbore/lab/diagnosis/diagnosis.h"
#include "fullbore/train/config.h"
#include "fullbore/train/config_keys.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_folder.h"

using namespace fullbore;
using fullbore::testing::MemoryFolder;
using fullbore::testing::parts_of;
using fullbore::testing::require;

namespace {

// One that a run of nothing but defaults can have, whichever workloads there are.
std::string trained_model() {
  for (const auto& choice : find_config_field("model.name")->choices) {
    std::string name(choice);
    try {
      (void)parse_config("", "x", std::vector{"model.name=" + name});
      return name;
    } catch (const UsageError&) {
    }
  }
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  static const bool prepared = [] {
    folder.put("config.resolved.yaml",
               "model: {name: " + trained_model() + "}\ntrain: {steps: 60}\n");
    return true;
  }();
  require(prepared);
  const auto parts = parts_of({reinterpret_cast<const char*>(data), size}, 2);
  folder.put("summary.json", parts[0]);
  folder.put("metrics.jsonl", parts[1]);
  Diagnosis diagnosis;
  diagnosis.is_run = true;
  try {
    FinishedRun run = read_finished_run(folder.path());
    diagnosis.facts = std::move(run.facts);
  } catch (const DataError& error) {
    require(std::string_view(error.what()).find(folder.path()) != std::string_view::npos);
    return 0;
  }
  for (const Advice& each : all_advice(diagnosis))
    require(!each.rule.empty() && !each.finding.empty() && !each.change.empty());
  require(!text(diagnosis).empty());
  const std::string json =
      to_json(diagnosis).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  require(parse_json(json).ok());
  return 0;
}

// Any bytes as what a tuning keeps: its result, or the record of a heat. Refused, or read such that what is written of it reads back
// equal; and a result says what it says for people without harm.
#include <nlohmann/json.hpp>
#include <string>

#include "fullbore/base/seal.h"
#include "fullbore/lab/tuning/tuning_bench.h"
#include "fullbore/lab/tuning/tuning_file.h"
#include "fullbore/lab/tuning/tuning_report.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  require(!parse_tuning(text + "x", "kept.json").ok());  // without its checksum
  if (text.empty() || text.back() != '}') return 0;
  const std::string sealed = seal_json(text);
  if (const Result<HeatRecord> heat = parse_heat_record(sealed, "heat.json"); heat.ok())
    require(heat.value().runs > 0 && heat.value().seconds >= 0);
  const Result<Tuning> tuning = parse_tuning(sealed, "kept.json");
  if (!tuning.ok()) return 0;
  tuning_text(tuning.value());
  tuning_markdown(tuning.value());
  const auto written = [](const Tuning& each) {
    return to_json(each).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const Result<Tuning> back = parse_tuning(seal_json(written(tuning.value())), "kept.json");
  require(back.ok() && written(back.value()) == written(tuning.value()));
  return 0;
}

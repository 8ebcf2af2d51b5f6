#include "fullbore/monitor/run_summary.h"

#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"

namespace fullbore {

nlohmann::ordered_json to_json(const RunSummary& summary) {
  nlohmann::ordered_json start = nlohmann::ordered_json::object();
  for (const StartPart& part : summary.start) start[part.name] = part.seconds;
  nlohmann::ordered_json json = {
      {"status", summary.status},
      {"steps", summary.steps},
      {"final_train_loss", summary.final_train_loss},
      {"final_validation_loss", summary.final_validation_loss},
      {"best_validation_loss", summary.best_validation_loss},
      {"best_step", summary.best_step},
      {"tokens_per_second", summary.tokens_per_second},
      {"utilisation", summary.utilisation},
      {"data_wait_share", summary.data_wait_share},
      {"peak_bytes", summary.peak_bytes},
      {"planned_peak_bytes", summary.planned_peak_bytes},
      {"parameters", summary.parameters},
      {"flops_per_step", summary.flops_per_step},
      {"seconds_to_first_step", summary.seconds_to_first_step},
      {"start_seconds", start},
      {"wall_seconds", summary.wall_seconds},
      {"skipped_steps", summary.skipped_steps},
      {"saves", summary.saves},
      {"save_stall_seconds", summary.save_stall_seconds},
  };
  if (!summary.error.empty()) json["error"] = summary.error;
  return json;
}

Status write_summary(const std::string& path, const RunSummary& summary) {
  // An error's text may quote bytes of a file that are no UTF-8: those become U+FFFD.
  return write_file_atomically(
      path, to_json(summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

}  // namespace fullbore

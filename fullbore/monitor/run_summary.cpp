#include "fullbore/monitor/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/input_file.h"
#include "fullbore/base/json.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/seal.h"

namespace fullbore {

nlohmann::ordered_json to_json(const RunSummary& summary) {
  nlohmann::ordered_json start = nlohmann::ordered_json::object();
  for (const StartPart& part : summary.start) start[part.name] = part.seconds;
  nlohmann::ordered_json phases = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kRunPhases; ++i)
    phases[std::string(run_phase_name(static_cast<RunPhase>(i)))] = summary.phases.seconds[i];
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
      {"phase_seconds", phases},
      {"skipped_steps", summary.skipped_steps},
      {"saves", summary.saves},
      {"save_stall_seconds", summary.save_stall_seconds},
  };
  if (const RunMaker& maker = summary.maker; maker.workers > 0)
    json["made_by"] = {{"build", maker.build},
                       {"device", maker.device},
                       {"hardware", maker.hardware},
                       {"processor", maker.processor},
                       {"workers", maker.workers}};
  if (const auto& fallbacks = summary.maker.fallbacks; !fallbacks.empty()) {
    nlohmann::ordered_json& nodes = json["fallbacks"] = nlohmann::ordered_json::array();
    for (const KernelFallback& each : fallbacks)
      nodes.push_back({{"node", each.node}, {"location", each.location}, {"reason", each.reason}});
  }
  if (summary.measured_steps > 0) {
    json["measured_steps"] = summary.measured_steps;
    json["measured_seconds"] = summary.measured_seconds;
    json["measured_tokens"] = summary.measured_tokens;
  }
  if (summary.step_times.steps() > 0) json["step_times"] = summary.step_times.to_json();
  if (summary.metric_lines >= 0) json["metric_lines"] = summary.metric_lines;
  if (summary.log_bytes >= 0) {
    json["log_bytes"] = summary.log_bytes;
    json["log_checksum"] = summary.log_checksum;
  }
  if (!std::isnan(summary.samples_per_second)) {
    json["samples_per_second"] = summary.samples_per_second;
    if (std::isnan(summary.tokens_per_second)) {
      json.erase("tokens_per_second");
      json.erase("measured_tokens");
    }
  }
  if (!summary.error.empty()) json["error"] = summary.error;
  return json;
}

std::vector<KernelFallback> fallbacks_of(const nlohmann::json& summary) {
  std::vector<KernelFallback> fallbacks;
  const auto found = summary.find("fallbacks");
  if (found == summary.end() || !found->is_array()) return fallbacks;
  const auto text = [](const nlohmann::json& node, const char* key) {
    const auto value = node.find(key);
    return value != node.end() && value->is_string() ? printable(value->get<std::string>()) : "";
  };
  for (const nlohmann::json& node : *found)
    if (node.is_object())
      fallbacks.push_back({text(node, "node"), text(node, "location"), text(node, "reason")});
  std::erase_if(fallbacks, [](const KernelFallback& each) { return each.node.empty(); });
  return fallbacks;
}

Status write_summary(const std::string& path, const RunSummary& summary) {
  // An error's text may quote bytes of a file that are no UTF-8: those become U+FFFD.
  return write_file_atomically(
      path,
      seal_json(to_json(summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                '\n'));
}

Result<std::string> checksum_of_start(const std::string& path, int64_t bytes) {
  const Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  std::vector<char> piece(size_t{1} << 16);
  uint64_t hash = 0;
  for (int64_t at = 0; at < bytes;) {
    const auto count = static_cast<size_t>(std::min<int64_t>(bytes - at, std::ssize(piece)));
    if (Status s = file.value().read_exactly(static_cast<uint64_t>(at), piece.data(), count);
        !s.ok())
      return Failure{s.error()};
    hash = hash_bytes(piece.data(), count, hash);
    at += static_cast<int64_t>(count);
  }
  return hash_hex(hash);
}

}  // namespace fullbore

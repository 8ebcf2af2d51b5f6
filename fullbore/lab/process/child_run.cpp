#include "fullbore/lab/process/child_run.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/monitor/json_line_reader.h"
#include "fullbore/monitor/summary_file.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

double number(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>()
                                                     : RunEvaluation::kUnknown;
}

int64_t whole_number(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

RunEvaluation evaluation_of(const nlohmann::ordered_json& line) {
  constexpr std::string_view kPrefix = "validation_";
  RunEvaluation evaluation;
  for (const auto& [name, value] : line.items()) {
    if (!value.is_number()) continue;
    if (name == "step") evaluation.step = value.get<int64_t>();
    if (name == "seconds") evaluation.seconds = value.get<double>();
    if (std::string_view(name).starts_with(kPrefix))
      evaluation.metrics.emplace_back(name.substr(kPrefix.size()), value.get<double>());
  }
  return evaluation;
}

}  // namespace

double RunEvaluation::metric(const std::string& name) const {
  for (const auto& [each, value] : metrics)
    if (each == name) return value;
  return kUnknown;
}

Result<RunOutcome> read_run_outcome(const std::string& folder) {
  const Result<SummaryFile> file = read_summary(folder + "/summary.json");
  if (!file.ok()) return Failure{file.error()};
  const nlohmann::json& summary = file.value().json;
  RunOutcome outcome;
  if (const auto status = summary.find("status"); status != summary.end() && status->is_string())
    outcome.status = status->get<std::string>();
  outcome.steps = whole_number(summary, "steps");
  outcome.parameters = whole_number(summary, "parameters");
  outcome.planned_peak_bytes = whole_number(summary, "planned_peak_bytes");
  outcome.resident_peak_bytes = whole_number(summary, "peak_bytes");
  outcome.seconds_to_first_step = number(summary, "seconds_to_first_step");
  outcome.wall_seconds = number(summary, "wall_seconds");
  outcome.final_train_loss = number(summary, "final_train_loss");
  outcome.tokens_per_step = number(summary, "measured_tokens") / number(summary, "measured_steps");
  outcome.samples_per_second = number(summary, "samples_per_second");
  if (const auto parts = summary.find("start_seconds");
      parts != summary.end() && parts->is_object())
    for (const auto& [name, seconds] : parts->items())
      if (seconds.is_number()) outcome.start.push_back({name, seconds.get<double>()});
  Result<JsonLineReader> metrics = JsonLineReader::open(folder + "/metrics.jsonl");
  if (!metrics.ok()) return Failure{metrics.error()};
  JsonLineReader& lines = metrics.value();
  for (;;) {
    const Result<bool> more = lines.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) break;
    const nlohmann::ordered_json& line = lines.record();
    if (line.value("kind", "") == "evaluation") outcome.evaluations.push_back(evaluation_of(line));
  }
  if (!lines.problems().empty()) return Failure{lines.problems().front()};
  return outcome;
}

ChildCommand training_command(const TrainingRequest& request) {
  std::error_code error;
  fs::remove_all(request.folder, error);
  ChildCommand command;
  command.words = {"train", request.config};
  command.words.insert(command.words.end(), request.settings.begin(), request.settings.end());
  command.words.push_back("run.dir=" + request.folder);
  if (request.cold) {
    const std::string caches = request.folder + ".cache";
    fs::remove_all(caches, error);
    command.words.push_back("engine.cache_dir=" + caches);
  }
  command.output = request.folder + ".out";
  command.errors = request.folder + ".err";
  return command;
}

TrainingResult training_result(const TrainingRequest& request, const ChildEnd& end) {
  TrainingResult result{.end = end, .outcome = {}, .reason = end.reason()};
  Result<RunOutcome> outcome = read_run_outcome(request.folder);
  if (outcome.ok())
    result.outcome = std::move(outcome).value();
  else if (result.ok())
    result.reason = outcome.error();
  return result;
}

void refuse_full_disk(const std::string& reason) {
  for (const int error : {ENOSPC, EDQUOT, EFBIG})
    if (reason.find(std::strerror(error)) != std::string::npos)
      throw DataError(
          fmt::format("lab: a run ended for want of disk space; all that was finished is kept, and "
                      "--resume goes on: {}",
                      reason));
}

TrainingResult run_training(const TrainingRequest& request, const StopRequest& stop) {
  return training_result(request,
                         run_child(training_command(request), request.deadline_seconds, stop));
}

}  // namespace fullbore

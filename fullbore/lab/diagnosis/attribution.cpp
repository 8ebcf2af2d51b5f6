#include "fullbore/lab/diagnosis/attribution.h"

#include <algorithm>
#include <numeric>

namespace fullbore {
namespace {

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

/// How often something happens.
double count_of(const AttributionRow& row, const RunCounts& counts) {
  switch (row.phase) {
    case RunPhase::start: return 1;
    case RunPhase::evaluation: return counts.evaluated_batches;
    case RunPhase::checkpoint: return row.what == kLastSave ? 1 : counts.saves;
    case RunPhase::data:
    case RunPhase::rollouts:
    case RunPhase::step:
    case RunPhase::host: break;
  }
  return counts.steps;
}

void add_start(double seconds, const std::vector<StartPart>& parts,
               std::vector<AttributionRow>& rows) {
  double left = seconds;
  for (const StartPart& part : parts) {
    if (part.name == "evaluation") continue;  // before the first step: a phase of its own
    const double taken = std::clamp(part.seconds, 0.0, left);
    rows.push_back({.phase = RunPhase::start,
                    .what = part.name == "step" ? "first step" : part.name,
                    .seconds = taken});
    left -= taken;
  }
  rows.push_back({.phase = RunPhase::start, .what = "measure the machine", .seconds = left});
}

void add_steps(double seconds, const RecordedSteps& recorded, std::vector<AttributionRow>& rows) {
  if (recorded.step_seconds <= 0) {
    rows.push_back({.phase = RunPhase::step, .what = kStep, .seconds = seconds});
    return;
  }
  const double scale = seconds / recorded.step_seconds;
  for (const KernelClass& kernel : recorded.kernels)
    rows.push_back({.phase = RunPhase::step,
                    .what = kernel.name,
                    .seconds = scale * kernel.seconds,
                    .roofline_seconds = scale * kernel.roofline_seconds,
                    .memory_seconds = scale * kernel.memory_seconds,
                    .launches = scale * kernel.launches});
  rows.push_back(
      {.phase = RunPhase::step, .what = kIdle, .seconds = scale * recorded.idle_seconds});
}

void sort_rows(std::vector<AttributionRow>& rows) {
  std::ranges::stable_sort(rows, [](const AttributionRow& a, const AttributionRow& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.seconds > b.seconds;
  });
}

}  // namespace

double Attribution::seconds() const {
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [](double sum, const AttributionRow& row) { return sum + row.seconds; });
}

double Attribution::seconds(RunPhase phase) const {
  double sum = 0;
  for (const AttributionRow& row : rows)
    if (row.phase == phase) sum += row.seconds;
  return sum;
}

double Attribution::seconds(RunPhase phase, std::string_view what) const {
  double sum = 0;
  for (const AttributionRow& row : rows)
    if (row.phase == phase && row.what == what) sum += row.seconds;
  return sum;
}

double Attribution::loop_seconds() const {
  return seconds(RunPhase::data) + seconds(RunPhase::rollouts) + seconds(RunPhase::step) +
         seconds(RunPhase::host);
}

Attribution attribute(double wall_seconds, const PhaseSeconds& phases,
                      const std::vector<StartPart>& start, const RecordedSteps& recorded,
                      double save_stall_seconds) {
  Attribution result{.wall_seconds = wall_seconds, .rows = {}};
  std::vector<AttributionRow>& rows = result.rows;
  add_start(phases[RunPhase::start], start, rows);
  const auto add = [&](RunPhase phase, const char* what) {
    rows.push_back({.phase = phase, .what = what, .seconds = phases[phase]});
  };
  add(RunPhase::data, "wait for the batch");
  add(RunPhase::rollouts, "make the batch");
  add_steps(phases[RunPhase::step], recorded, rows);
  add(RunPhase::evaluation, "held-out batches");
  const double saving = phases[RunPhase::checkpoint];
  const double stall = std::clamp(save_stall_seconds, 0.0, saving);
  rows.push_back({.phase = RunPhase::checkpoint, .what = kSave, .seconds = stall});
  rows.push_back({.phase = RunPhase::checkpoint, .what = kLastSave, .seconds = saving - stall});
  add(RunPhase::host, "lines, metrics, checks");
  std::erase_if(rows, [](const AttributionRow& row) { return row.seconds <= 0; });
  sort_rows(rows);
  return result;
}

Attribution with_steps_of(const Attribution& run, const Attribution& measured) {
  const double seconds = measured.seconds(RunPhase::step);
  if (!(seconds > 0)) return run;
  Attribution result = run;
  const double times = run.seconds(RunPhase::step) / seconds;
  std::erase_if(result.rows, [](const AttributionRow& row) { return row.phase == RunPhase::step; });
  for (AttributionRow row : measured.rows) {
    if (row.phase != RunPhase::step) continue;
    row.seconds *= times;
    row.roofline_seconds *= times;
    row.memory_seconds *= times;
    row.launches *= times;
    result.rows.push_back(std::move(row));
  }
  sort_rows(result.rows);
  return result;
}

Attribution project(const Attribution& attribution, const RunCounts& measured,
                    const RunCounts& counts) {
  Attribution result = attribution;
  for (AttributionRow& row : result.rows) {
    const double times = ratio(count_of(row, counts), count_of(row, measured));
    row.seconds *= times;
    row.roofline_seconds *= times;
    row.memory_seconds *= times;
    row.launches *= times;
  }
  result.wall_seconds = result.seconds();
  return result;
}

}  // namespace fullbore

#include "fullbore/train/first_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "fullbore/base/processor.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/train/batch_rows.h"

namespace fullbore {
namespace {

std::string device_line(const TrainingJob& job, const DeviceFacts& device) {
  const CompileOptions& compile = job.options.compile;
  std::string line = fmt::format("device   {} ({}), {} worker{}, ", device.name, device.hardware,
                                 device.workers, device.workers == 1 ? "" : "s");
  if (job.options.device == kAutomatic && device.name == "cpu")
    line += fmt::format("as engine.device=auto finds no card ({}), ", automatic_device().why);
  else if (job.options.device == kAutomatic)
    line += "as engine.device=auto finds a card, ";
  if (device.name == "cpu")
    line += fmt::format("instructions {}, ", processor_level_name(this_processor().level));
  line += compile.tf32                       ? "tf32"
          : compile.precision == DType::f32  ? "fp32"
          : compile.precision == DType::bf16 ? "bf16"
                                             : "fp16";
  if ((compile.tf32 || compile.precision != DType::f32) && !compile.fp32_scopes.empty())
    line += fmt::format(" (fp32 in {})", fmt::join(compile.fp32_scopes, ", "));
  if (compile.fp8) line += ", matmuls of weights in 8-bit floats";
  if (compile.row_invariant) line += ", row-invariant";
  if (device.moments_in_host) line += ", moments in the host's memory";
  if (compile.compile != CompileEffort::full)
    line += fmt::format(", engine.compile={}", compile_effort_name(compile.compile));
  return line;
}

std::string batch_line(const TrainingJob& job) {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = 0;
  for (const std::vector<BatchField>& fields : job.training->shapes()) {
    const int64_t rows = batch_rows(fields);
    least = std::min(least, rows);
    most = std::max(most, rows);
  }
  std::string line = least == most ? fmt::format("batch    {} row{}", most, most == 1 ? "" : "s")
                                   : fmt::format("batch    {} to {} rows", least, most);
  if (!job.sample_unit.empty()) line += " of " + job.sample_unit;
  const Microbatches& parts = job.options.parts;
  if (parts.accumulate * parts.parallel == 1) return line + ", whole";
  return line + fmt::format(" in {} microbatches: {} one after another, {} side by side",
                            parts.accumulate * parts.parallel, parts.accumulate, parts.parallel);
}

std::string optimizer_line(const OptimizerOptions& optimizer) {
  const ScheduleOptions& schedule = optimizer.schedule;
  std::string line = fmt::format("optim    {}, {} schedule from {:.4g}", optimizer.name,
                                 schedule.schedule, schedule.learning_rate);
  if (schedule.schedule != "constant")
    line += fmt::format(" to {:.4g}", schedule.minimum_learning_rate);
  line += fmt::format(" in {} steps", schedule.total_steps);
  if (schedule.warmup_steps > 0) line += fmt::format(", {} of warm-up", schedule.warmup_steps);
  return line;
}

}  // namespace

std::vector<std::string> first_lines(const TrainingJob& job, const DeviceFacts& device) {
  std::vector<std::string> lines = {device_line(job, device), batch_line(job),
                                    optimizer_line(job.options.optimizer)};
  const auto& disabled = job.options.compile.passes.disabled;
  if (!disabled.empty())
    lines.push_back(fmt::format("passes   switched off: {}", fmt::join(disabled, ", ")));
  return lines;
}

std::vector<std::string> fallback_lines(std::span<const KernelFallback> fallbacks) {
  constexpr size_t kMost = 8;
  std::vector<std::string> lines;
  for (const KernelFallback& each : fallbacks.first(std::min(kMost, fallbacks.size())))
    lines.push_back(fmt::format(
        "{}{}: no kernel ({}); the op's reference runs in its place, to the same values but for "
        "rounding, and far slower",
        each.node, each.location.empty() ? "" : fmt::format(" ({})", each.location), each.reason));
  if (fallbacks.size() > kMost)
    lines.push_back(fmt::format("and {} more nodes have no kernel", fallbacks.size() - kMost));
  return lines;
}

}  // namespace fullbore

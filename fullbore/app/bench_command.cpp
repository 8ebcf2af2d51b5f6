#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <utility>

#include "fullbore/app/bench_report.h"
#include "fullbore/app/bench_start.h"
#include "fullbore/app/commands.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/monitor/process.h"

namespace fullbore {
namespace {

struct BenchArguments {
  MeasuredArguments job;
  std::vector<std::string> versus;
  BenchmarkOptions options;
  std::string json;
  bool no_start = false;
  std::string one_start;
};

/// A setting, built and ready to run.
struct Subject {
  MeasuredJob job;
  std::unique_ptr<StepRunner> runner;
  BenchContender contender;
};

Subject build(const BenchArguments& arguments, const std::vector<std::string>& versus,
              Console& console) {
  std::vector<std::string> settings = arguments.job.overrides;
  settings.insert(settings.end(), versus.begin(), versus.end());
  Subject subject;
  subject.job =
      measured_job(named_config(arguments.job.config, settings), arguments.job.vocabulary, console);
  console.live("compiling");
  subject.runner = std::make_unique<StepRunner>(subject.job.job);
  const StepRunner& runner = *subject.runner;
  BenchContender& contender = subject.contender;
  contender.name = versus.empty() ? "as configured" : fmt::format("{}", fmt::join(versus, " "));
  contender.settings = std::move(settings);
  contender.config = subject.job.config;
  contender.batches = subject.job.batches;
  contender.batch = subject.job.batch;
  contender.sample_unit = subject.job.job.sample_unit;
  contender.decisions = subject.job.decisions;
  contender.machine = known_machine(subject.runner->device());
  for (size_t shape = 0; shape < runner.shapes(); ++shape)
    contender.shapes.push_back({runner.batch_shape(shape).text(),
                                report_plan(runner.plan(shape), contender.machine.peaks)});
  contender.planned_peak_bytes = runner.planned_bytes();
  contender.parameters = parameter_count(runner.state());
  contender.trace_seconds = runner.trace_seconds();
  contender.compile_seconds = runner.compile_seconds();
  return subject;
}

/// Peaks that its times do not exceed (settle_peaks), and the plans' reports by them and by the iterations that were made.
void settle(Subject& subject) {
  BenchContender& contender = subject.contender;
  const StepRunner& runner = *subject.runner;
  const auto report = [&](const MachinePeaks& peaks) {
    contender.machine.peaks = peaks;
    for (size_t shape = 0; shape < runner.shapes(); ++shape)
      contender.shapes[shape].plan =
          report_plan(runner.plan(shape), peaks, contender.times.shapes[shape].mean_iterations());
    return roofline_share(contender);
  };
  contender.machine = settle_peaks(contender.machine, report,
                                   [&] { return refresh_machine(subject.runner->device()); });
  report(contender.machine.peaks);
}

/// In processes of their own, before this one takes memory.
std::optional<Result<MeasuredStart>> start_of(const BenchArguments& arguments,
                                              const std::vector<std::string>& versus,
                                              Console& console) {
  if (arguments.no_start) return std::nullopt;
  std::vector<std::string> settings = arguments.job.overrides;
  settings.insert(settings.end(), versus.begin(), versus.end());
  console.live("measuring the start");
  try {
    return measure_start(arguments.job, settings);
  } catch (const DataError& error) {
    return Failure{error.what()};
  }
}

ExitCode run_bench(const BenchArguments& arguments) {
  if (!arguments.one_start.empty()) make_one_start(arguments.job, arguments.one_start);
  check_output_file(arguments.json);
  Console console;
  std::vector<Subject> subjects;
  std::vector<std::vector<std::string>> contenders = {{}};
  if (!arguments.versus.empty()) contenders.push_back(arguments.versus);
  std::vector<std::optional<Result<MeasuredStart>>> starts;
  for (const auto& versus : contenders) starts.push_back(start_of(arguments, versus, console));
  // What those processes refuse this one does too, with its own exit code.
  for (const auto& versus : contenders) subjects.push_back(build(arguments, versus, console));
  for (size_t i = 0; i < subjects.size(); ++i) subjects[i].contender.start = std::move(starts[i]);
  forget_peak_resident_bytes();  // of reading the text, of measuring the machine
  std::vector<StepRunner*> runners;
  for (Subject& subject : subjects) runners.push_back(subject.runner.get());
  std::vector<BenchmarkTimes> times = measure_steps(
      runners, arguments.options, [&](const std::string& doing) { console.live(doing); });
  BenchReport report;
  report.config = arguments.job.config;
  report.peak_resident_bytes = peak_resident_bytes();
  for (size_t i = 0; i < subjects.size(); ++i) {
    subjects[i].contender.times = std::move(times[i]);
    settle(subjects[i]);
    subjects[i].contender.seconds_to_first_step = subjects[i].runner->seconds_to_first_step();
    report.contenders.push_back(std::move(subjects[i].contender));
  }
  console.clear();
  // With JSON on standard output there is nothing else on it.
  if (arguments.json != "-") print_output("{}", text(report));
  if (!arguments.json.empty()) write_output_file(arguments.json, json_text(to_json(report)));
  return ExitCode::kOk;
}

}  // namespace

void add_bench_command(Command root) {
  Command command =
      root.add_subcommand("bench", "Measure how fast a job's steps are, or one setting by another");
  auto arguments = std::make_shared<BenchArguments>();
  BenchmarkOptions& options = arguments->options;
  add_measured_arguments(command, arguments->job);
  command.add_option("--vs", arguments->versus, "Compare with this setting, key=value; repeatable")
      .one_value_each_time();
  command.add_option("--rounds", options.rounds, "How often the settings take turns")
      .between(3, 100'000)
      .shows_default();
  command
      .add_option("--steps", options.steps_per_round, "Steps per round; 0: a quarter of a second")
      .between(0, 1'000'000)
      .shows_default();
  command.add_option("--warm-up", options.warm_up_steps, "Steps before the first round")
      .between(1, 1'000'000)
      .shows_default();
  command.add_flag("--no-start", arguments->no_start,
                   "Leave out the start, which two processes are made for");
  command.add_option("--one-start", arguments->one_start,
                     "Make one step as `train` would, in this new folder, and write where the time "
                     "went as JSON: what the start is measured by");
  command.add_option("--json", arguments->json, "File to write all figures to; -: stdout");
  command.footer(
      "\nRuns the job's training step on the job's batches and saves nothing. Without\n"
      "data.path the tokens are random. With --vs both settings are built in one\n"
      "process and run in turns from the same initial values on the same batches. The\n"
      "ratio is that of the throughputs in the same round: its median, with a 95 %\n"
      "confidence interval by bootstrap over the rounds.\n"
      "\nWhere batches come in several shapes (data.batching=buckets) all figures are of\n"
      "the mixture that was met: what was done over the time that it took, and a table\n"
      "by shape. A round is then as many steps for both settings, and the warm-up lasts\n"
      "until it has met every shape that is measured.\n"
      "\n"
      "The start is from the command to the end of the first step, of a process of its own\n"
      "that trains without evaluations: once with empty caches, once with those that were\n"
      "filled by that. What it takes beside a step is told too.\n"
      "\nExample:\n"
      "  fullbore bench configs/gpt-shakespeare-cpu.yaml\n"
      "  fullbore bench configs/gpt-shakespeare.yaml --vs engine.disabled_passes=[fuse]\n"
      "  fullbore bench configs/gpt2-124m.yaml --rounds 3 --json bench.json");
  command.runs([arguments] { return run_bench(*arguments); });
}

}  // namespace fullbore

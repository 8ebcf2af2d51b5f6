#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "fullbore/app/commands.h"
#include "fullbore/app/job_options.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/app/sensors_json.h"
#include "fullbore/app/version.h"
#include "fullbore/device/occupancy.h"
#include "fullbore/monitor/card_readings.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/step_profile.h"
#include "fullbore/train/step_runner.h"

namespace fullbore {
namespace {

struct ProfileArguments {
  MeasuredArguments job;
  int wait = 5;
  int warm_up = 2;
  int active = 5;
  int repeat = 2;
  int64_t top = 25;
  std::optional<std::string> trace;
  int64_t trace_mebibytes = 32;
  std::string json;
};

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// "mine.trace.json" of configs/mine.yaml.
std::string default_trace(const std::string& config) {
  return std::filesystem::path(config).stem().string() + ".trace.json";
}

std::unique_ptr<TraceFile> make_trace(const ProfileArguments& arguments, const std::string& path,
                                      const StepRunner& runner, int workers) {
  std::unique_ptr<TraceFile> trace =
      make_trace_file(path, static_cast<size_t>(arguments.trace_mebibytes) << 20);
  for (int worker = 0; worker < workers; ++worker)
    trace->name_thread(worker, fmt::format("worker {}", worker));
  trace->name_thread(workers, fmt::format("steps of {}", runner.plan(0).graph.name()));
  return trace;
}

std::vector<ProfiledShape> profiled_shapes(const StepRunner& runner) {
  std::vector<ProfiledShape> shapes;
  for (size_t shape = 0; shape < runner.shapes(); ++shape)
    shapes.push_back({runner.batch_shape(shape).text(), &runner.plan(shape)});
  return shapes;
}

/// One step that is recorded; `launches`: per shape.
void record_step(StepRunner& runner, StepProfile& profile, TraceFile& trace,
                 const std::vector<std::vector<LaunchEntry>>& launches) {
  const int64_t begin = now_ns();
  const StepRunner::Step step = runner.run();
  const int64_t end = now_ns();
  const Program& program = runner.program(step.shape);
  const std::vector<LaneEvents> workers = program.events();
  profile.add(workers, step.run_seconds, step.shape, program.iterations_made());
  const auto waited = static_cast<int64_t>(step.wait_seconds * 1e9);
  const int row = runner.device().facts().workers;
  trace.add(fmt::format("step {}", runner.steps()), row, begin, end,
            {{"loss", step.loss}, {"batch", runner.batch_shape(step.shape).text()}});
  trace.add("wait for the batch", row, begin, begin + waited);
  trace.add("run", row, begin + waited, end);
  trace.add_bytes("resident bytes of the process", begin, resident_bytes());
  trace_step(trace, runner.plan(step.shape), launches[step.shape], workers);
}

void set_profiling(StepRunner& runner, bool on) {
  for (size_t shape = 0; shape < runner.shapes(); ++shape) runner.program(shape).set_profiling(on);
}

void run_phases(const ProfileArguments& arguments, StepRunner& runner, StepProfile& profile,
                TraceFile& trace, Console& console) {
  std::vector<std::vector<LaunchEntry>> launches;
  for (size_t shape = 0; shape < runner.shapes(); ++shape)
    launches.push_back(launch_list(runner.plan(shape)));
  // Until every shape that will be recorded was met.
  const int64_t before = arguments.wait + arguments.warm_up;
  const int64_t rest = (before + arguments.active) * int64_t{arguments.repeat} - before;
  for (int64_t more = runner.steps_to_warm_up(before, rest) - before; more > 0; --more)
    runner.run();
  for (int cycle = 0; cycle < arguments.repeat; ++cycle) {
    console.live(fmt::format("profiling, cycle {}/{}", cycle + 1, arguments.repeat));
    for (int i = 0; i < arguments.wait; ++i) runner.run();
    set_profiling(runner, true);
    for (int i = 0; i < arguments.warm_up; ++i) runner.run();
    for (int i = 0; i < arguments.active; ++i) record_step(runner, profile, trace, launches);
    set_profiling(runner, false);
  }
}

ExitCode run_profile(const ProfileArguments& arguments) {
  const std::string trace_path = arguments.trace.value_or(default_trace(arguments.job.config));
  check_output_file(arguments.json);
  check_output_file(trace_path);
  Console console;
  const MeasuredJob job = measured_job(named_config(arguments.job.config, arguments.job.overrides),
                                       arguments.job.vocabulary, console);
  console.live("compiling");
  StepRunner runner(job.job);
  const int workers = runner.device().facts().workers;
  Machine machine = known_machine(runner.device());
  StepProfile profile(profiled_shapes(runner), machine.peaks);
  const std::unique_ptr<TraceFile> trace = make_trace(arguments, trace_path, runner, workers);
  // Of a card its own figures too, at the end of its work.
  auto* const card = dynamic_cast<OccupancySource*>(&runner.device());
  const std::unique_ptr<SensorSource> sensors = card == nullptr ? nullptr : card_sensors();
  std::vector<SensorReading> readings;
  if (card != nullptr) profile.set_occupancies(*card);
  run_phases(arguments, runner, profile, *trace, console);
  if (sensors != nullptr) sensors->read(0, readings);
  machine = settle_peaks(
      machine,
      [&](const MachinePeaks& peaks) {
        profile.set_peaks(peaks);
        return profile.roofline_seconds() / profile.step_seconds();
      },
      [&] { return refresh_machine(runner.device()); });
  console.clear();

  const std::string about =
      job_text(job.config, job.batch, parameter_count(runner.state()), workers);
  // With JSON on standard output there is nothing else on it.
  const bool talks = arguments.json != "-" && trace_path != "-";
  if (talks) {
    const int columns = Console(1).terminal() ? Console(1).width() : 0;
    print_output("{}\nbatches: {}\n", about, job.batches);
    for (const std::string& decision : job.decisions) print_output("memory: {}\n", decision);
    print_output("{}", text(profile, static_cast<size_t>(arguments.top), columns));
    for (const std::string& line : card_lines(readings)) print_output("{}\n", line);
  }
  if (!arguments.json.empty()) {
    nlohmann::ordered_json json = {{"schema", 1},
                                   {"version", version()},
                                   {"config", arguments.job.config},
                                   {"job", about},
                                   {"decisions", job.decisions}};
    json.update(to_json(profile));
    if (card != nullptr) json["sensors"] = sensors_json(readings);
    write_output_file(arguments.json, json_text(json));
  }
  if (trace_path.empty()) return ExitCode::kOk;
  write_output_file(trace_path, trace->finish({{"job", about}, {"version", version()}}));
  if (talks)
    print_output("trace: {}, {} events{}, for https://ui.perfetto.dev\n", trace_path,
                 trace->events(),
                 trace->dropped() == 0
                     ? ""
                     : fmt::format(" and {} without room (--trace-mebibytes)", trace->dropped()));
  return ExitCode::kOk;
}

void add_phases(Command command, ProfileArguments& arguments) {
  const auto add = [&](const char* name, int& place, int least, const char* meaning) {
    command.add_option(name, place, meaning).between(least, 100'000).shows_default();
  };
  add("--wait", arguments.wait, 0, "Steps of each cycle that are not recorded");
  add("--warm-up", arguments.warm_up, 0, "Steps after them that are recorded for nothing");
  add("--active", arguments.active, 1, "Steps after them that count");
  add("--repeat", arguments.repeat, 1, "Cycles");
}

}  // namespace

void add_profile_command(Command root) {
  Command command =
      root.add_subcommand("profile", "Tell where the time of a step goes, kernel by kernel");
  auto arguments = std::make_shared<ProfileArguments>();
  add_measured_arguments(command, arguments->job);
  add_phases(command, *arguments);
  command.add_option("--top", arguments->top, "Kernels to print, the longest first")
      .between(int64_t{1}, int64_t{1} << 30)
      .shows_default();
  command.add_option(
      "--trace", arguments->trace,
      "Timeline; default CONFIG's name, .trace.json; *.pftrace: Perfetto's own format");
  command
      .add_option("--trace-mebibytes", arguments->trace_mebibytes,
                  "Its size at most; what comes later is left out")
      .between(int64_t{1}, int64_t{1} << 12)
      .shows_default();
  command.add_option("--json", arguments->json, "File to write the table to; -: stdout");
  command.footer(
      "\nA row is one kernel on one shape from one line of the model: its time per step,\n"
      "share of the step, launches per step, GFLOP/s, GB/s, and how much it reaches of\n"
      "what the machine's measured peaks allow. Launches inside loops count. Nothing is\n"
      "saved but the timeline (--trace \"\": not that either), for ui.perfetto.dev.\n"
      "\nOn a card a row has the kernel's theoretical occupancy too, and what limits it;\n"
      "below the table stands what NVIDIA's library says of the card at the end.\n"
      "\nWhere batches come in several shapes (data.batching=buckets) a step is one of the\n"
      "mixture that was recorded: each shape's medians, by how many of the steps had it.\n"
      "A table of the shapes comes first; a kernel that knows no batch, such as the\n"
      "optimiser's, is one row for all of them. More --active: a truer mixture.\n"
      "\nExample:\n"
      "  fullbore profile configs/gpt-shakespeare-cpu.yaml\n"
      "  fullbore profile configs/gpt2-124m.yaml train.batch_size=1 --wait 1 --repeat 1");
  command.runs([arguments] { return run_profile(*arguments); });
}

}  // namespace fullbore

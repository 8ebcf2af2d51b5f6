/// The training step of a config, replayed on demand: Fullbore's side of bench/peers/compare_gpt.
///
///     bench_gpt_step CONFIG [key=value ...]
///
/// Obeys the protocol of bench/peers/README.md: a JSON line when ready, then for each line `N` read
/// from standard input N steps on fresh random windows and one JSON line about them. For people,
/// `profile N` runs N steps launch by launch and prints the ten longest as a table. Batches are made
/// by the calling thread inside the measured time, so that no thread beside the team works.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>

#include "apps/language_model.h"
#include "fullbore/data/loader.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of all threads: what a busy machine disturbs less than the clock.
double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of what other processes disturb now and then, where a mean would count their time slices.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// All launches of one kernel on one shape: the layers of a model have the same ones.
struct LaunchGroup {
  int count = 0;
  double seconds = 0;
  Cost cost;
  double roofline = 0;
  std::string what;  // description, and where the first of them comes from
};

class GptStep {
 public:
  explicit GptStep(const Config& config)
      : config_(config),
        job_(training_job(config, open_text(config))),
        step_(trace_training_step(job_.loss, job_.training->fields(), job_.options.optimizer)),
        state_(initial_state(step_, job_.options.seed)),
        team_(job_.options.workers),
        program_(Program::compile(step_.graph, state_, team_, job_.options.compile)),
        loader_(job_.training, {.workers = 0, .prefetch = 1}),
        machine_(known_machine(team_)) {}

  Json run(int64_t count);
  Json ready(double first_step_seconds) const;
  std::string profile(int64_t count);

 private:
  double replay() {
    program_.run(loader_.next());
    return program_.scalar("loss");
  }
  void add_to_group(const Step& launch, double seconds,
                    std::map<std::string, LaunchGroup>& groups) const;
  std::string table(const std::map<std::string, LaunchGroup>& groups, double launched) const;

  Config config_;
  TrainingJob job_;
  TracedStep step_;
  State state_;
  Team team_;
  Program program_;
  Loader loader_;
  Machine machine_;
};

Json GptStep::run(int64_t count) {
  const Clock::time_point start = Clock::now();
  const double processor_start = processor_seconds();
  double losses = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    const Clock::time_point step_start = Clock::now();
    losses += replay();
    least = std::min(least, seconds_since(step_start));
  }
  const auto steps = static_cast<double>(count);
  const double seconds = seconds_since(start) / steps;
  return {{"steps", count},
          {"step", loader_.position()},
          {"seconds_per_step", seconds},
          {"least_seconds_per_step", least},
          {"cpu_seconds_per_step", (processor_seconds() - processor_start) / steps},
          {"tokens_per_second", static_cast<double>(job_.tokens_per_step) / seconds},
          {"loss", losses / steps},
          {"peak_resident_bytes", peak_resident_bytes()}};
}

Json GptStep::ready(double first_step_seconds) const {
  int64_t parameters = 0;
  for (const StateEntry& entry : state_.entries())
    if (entry.role == Role::parameter) parameters += entry.type.elements();
  auto passes = Json::array();
  for (const Pass& pass : pipeline())
    if (!job_.options.compile.passes.disabled.contains(std::string(pass.name)))
      passes.push_back(pass.name);
  const Config::Optim& optim = config_.optim;
  return {{"ready", true},
          {"side", "fullbore"},
          {"flags", passes},
          {"threads", team_.workers()},
          {"precision", config_.engine.precision},
          {"parameters", parameters},
          {"first_step_seconds", first_step_seconds},
          {"planned_peak_bytes", program_.plan().peak_bytes()},
          {"launches", program_.plan().steps.size()},
          {"step_flops", program_.plan().flops},
          {"roofline_seconds", roofline_seconds(program_.plan(), machine_.peaks)},
          {"machine",
           {{"processor", machine_.processor},
            {"fp32_flops", machine_.peaks.fp32_flops},
            {"bytes_per_second", machine_.peaks.bytes_per_second}}},
          {"job",
           {{"text", config_.data.path},
            {"batch", config_.train.batch_size},
            {"context", config_.model.context},
            {"layers", config_.model.layers},
            {"heads", config_.model.heads},
            {"width", config_.model.width},
            {"bias", config_.model.bias ? 1 : 0},
            {"dropout", config_.model.dropout},
            {"steps", config_.train.steps},
            {"schedule", optim.schedule},
            {"warmup", optim.warmup_steps},
            {"rate", optim.learning_rate},
            {"minimum_rate", optim.minimum_learning_rate},
            {"beta1", optim.beta1},
            {"beta2", optim.beta2},
            {"epsilon", optim.epsilon},
            {"decay", optim.weight_decay},
            {"clip", optim.clip_norm}}}};
}

void GptStep::add_to_group(const Step& launch, double seconds,
                           std::map<std::string, LaunchGroup>& groups) const {
  const Plan& plan = program_.plan();
  const Node* node =
      launch.node < 0 ? nullptr : &plan.graph.nodes()[static_cast<size_t>(launch.node)];
  const std::string description =
      launch.kernel >= 0 ? plan.kernels[static_cast<size_t>(launch.kernel)]->description()
                         : std::string(node ? node->op->name : "copy");
  LaunchGroup& group = groups[description];
  ++group.count;
  group.seconds += seconds;
  if (!node) return;
  const Cost cost = node_cost(plan.graph, *node);
  group.cost.flops += cost.flops;
  group.cost.bytes += cost.bytes;
  group.roofline += roofline_seconds(plan.graph, *node, machine_.peaks);
  if (group.count == 1)
    group.what = fmt::format("{}  {} {}", description, node->scope, node->location);
}

std::string GptStep::table(const std::map<std::string, LaunchGroup>& groups,
                           double launched) const {
  std::vector<const LaunchGroup*> order;
  for (const auto& [description, group] : groups) order.push_back(&group);
  std::ranges::sort(order, [](auto* a, auto* b) { return a->seconds > b->seconds; });
  std::string table = "count       us  share  GFLOP/s    GB/s  peak   launch\n";
  for (const LaunchGroup* group : order | std::views::take(10))
    table += fmt::format("{:5} {:8.1f} {:5.1f}% {:8.1f} {:7.1f} {:4.0f}%   {}\n", group->count,
                         group->seconds * 1e6, 100 * group->seconds / launched,
                         group->cost.flops / group->seconds / 1e9,
                         group->cost.bytes / group->seconds / 1e9,
                         100 * group->roofline / group->seconds, group->what);
  return table;
}

std::string GptStep::profile(int64_t count) {
  const Plan& plan = program_.plan();
  std::vector<std::vector<double>> samples(plan.steps.size() + 1);
  program_.set_profiling(true);
  for (int64_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    replay();
    samples.back().push_back(seconds_since(start));
    const std::vector<double> last = program_.profile();
    for (size_t j = 0; j < last.size(); ++j) samples[j].push_back(last[j]);
  }
  program_.set_profiling(false);

  std::map<std::string, LaunchGroup> groups;
  double launched = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const double seconds = median(samples[i]);
    launched += seconds;
    add_to_group(plan.steps[i], seconds, groups);
  }
  return fmt::format("{:.1f} us per step, median of {}; {} launches take worker 0 {:.1f} us\n",
                     1e6 * median(samples.back()), count, plan.steps.size(), launched * 1e6) +
         table(groups, launched);
}

void serve(const Config& config) {
  const Clock::time_point start = Clock::now();
  GptStep step(config);
  step.run(1);
  std::cout << step.ready(seconds_since(start)).dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    int64_t count = 0;
    if (line.starts_with("profile ") && words.ignore(8) >> count && count > 0)
      std::cout << step.profile(count) << std::flush;
    else if (words >> count && count > 0)
      std::cout << step.run(count).dump() << std::endl;
    else
      throw UsageError("expected `N` or `profile N`, found '" + line + "'");
  }
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_gpt_step CONFIG [key=value ...]\n";
    return 2;
  }
  try {
    const std::vector<std::string> overrides(argv + 2, argv + argc);
    fullbore::serve(fullbore::load_config(argv[1], overrides));
  } catch (const fullbore::Error& error) {
    std::cerr << "bench_gpt_step: " << error.what() << '\n';
    return static_cast<int>(error.code());
  }
  return 0;
}

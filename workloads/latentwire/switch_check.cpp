#include "workloads/latentwire/switch_check.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/train/step_runner.h"

namespace fullbore::latentwire {
namespace {

// Large, so that what the parameters are rounded to is small beside what they are moved by.
constexpr double kRate = 1024;

std::vector<double> parameters(const State& state) {
  std::vector<double> all;
  for (const StateEntry& entry : state.entries())
    if (entry.role == Role::parameter) {
      const std::vector<float> values = state.read<float>(entry.name);
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

// Steepest descent, of which nothing but the gradient is in a step.
Config with_plain_descent(Config config) {
  config.optim = {};
  config.optim.name = "sgd";
  config.optim.learning_rate = config.optim.minimum_learning_rate = kRate;
  config.optim.schedule = "constant";
  config.optim.warmup_steps = 0;
  config.optim.momentum = 0;
  config.optim.nesterov = false;
  config.optim.weight_decay = 0;
  config.optim.clip_norm = 0;
  return config;
}

struct Moved {
  double loss = 0;
  std::vector<double> by;
};

Moved moved(const Config& config, bool own_optimizer, const JobOf& job) {
  StepRunner runner(job(own_optimizer ? config : with_plain_descent(config)));
  const std::vector<double> before = parameters(runner.state());
  Moved result{.loss = runner.run().loss, .by = {}};
  if (own_optimizer) runner.run();
  result.by = parameters(runner.state());
  for (size_t i = 0; i < before.size(); ++i) result.by[i] -= before[i];
  return result;
}

double norm(const std::vector<double>& x) {
  double squares = 0;
  for (const double each : x) squares += each * each;
  return std::sqrt(squares);
}

std::string checked(Config& config, const Switch& each, const JobOf& job) {
  Config on = config, off = config;
  set_switch(on, each, true);
  set_switch(off, each, false);
  std::string trouble;
  PathDifference difference;
  const double most = std::max(tolerance_of(on), tolerance_of(off));
  try {
    difference = compare_paths(off, on, each.name == "fused_optimizer", job);
  } catch (const UsageError& error) {
    trouble = error.what();
  } catch (const MemoryError& error) {
    trouble = error.what();
  }
  // Numbers that are none are no agreement.
  const bool equal = trouble.empty() && difference.loss <= most && difference.gradient <= most;
  set_switch(config, each, equal);
  const std::string differ =
      fmt::format("loss and gradient differ by {:.1e} and {:.1e}, {:.0e} allowed", difference.loss,
                  difference.gradient, most);
  if (equal) return fmt::format("switch {} is on: {}", each.name, differ);
  return fmt::format("switch {} is TURNED OFF: {}", each.name, trouble.empty() ? differ : trouble);
}

}  // namespace

PathDifference compare_paths(const Config& off, const Config& on, bool own_optimizer,
                             const JobOf& job) {
  const Moved a = moved(off, own_optimizer, job), b = moved(on, own_optimizer, job);
  if (a.by.size() != b.by.size()) throw UsageError("the paths have different parameters");
  std::vector<double> difference(a.by.size());
  for (size_t i = 0; i < difference.size(); ++i) difference[i] = a.by[i] - b.by[i];
  return {std::abs(a.loss - b.loss) / std::abs(a.loss), norm(difference) / norm(a.by)};
}

double tolerance_of(const Config& config) {
  return config.engine.precision == "fp32" ? 1e-5 : 1e-2;
}

std::vector<std::string> settle_checked_switches(Config& config, const JobOf& job) {
  std::vector<const Switch*> order = rollout();
  for (const Switch& each : all_switches())
    if (each.name == "data_parallel") order.push_back(&each);
  const auto mode = [&](const Switch& each) -> std::string& {
    return config.get<LatentKeys>().switches.*each.mode;
  };
  // None is compared while another one is undecided: those that wait are off.
  std::vector<const Switch*> asked;
  for (const Switch* each : order) {
    if (mode(*each) != "check") continue;
    asked.push_back(each);
    set_switch(config, *each, false);
  }
  std::vector<std::string> lines;
  for (const Switch* each : asked) lines.push_back(checked(config, *each, job));
  return lines;
}

}  // namespace fullbore::latentwire

// Advice on where the time of a run goes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/base/text.h"
#include "fullbore/lab/diagnosis/advice.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

double part(double some, double all) { return all > 0 ? some / all : 0; }
/// Of the whole run's time.
double of_run(const RunFacts& facts, double seconds) {
  return part(seconds, facts.whole.wall_seconds);
}
std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Roofline of the steps over their time; 0 where it is not known. Kernels that find their operands in caches are faster
/// than memory allows, and count as no more than all of their time.
double roofline_reached(const RunFacts& facts) {
  double roofline = 0;
  for (const AttributionRow& row : facts.whole.rows)
    if (row.phase == RunPhase::step && row.roofline_seconds > 0)
      roofline += std::min(row.seconds, row.roofline_seconds);
  return part(roofline, facts.whole.seconds(RunPhase::step));
}

double idle_seconds(const RunFacts& facts) { return facts.whole.seconds(RunPhase::step, kIdle); }

std::string batch_size(int64_t rows) { return fmt::format("train.batch_size={}", rows); }

void input_bound(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.05;
  const double waiting = facts.whole.seconds(RunPhase::data);
  if (part(waiting, facts.whole.loop_seconds()) < kLeast) return;
  const int64_t workers = facts.config.data.workers;
  advice.push_back({.finding = fmt::format("The loop waits {} of its time for batches.",
                                           percent(part(waiting, facts.whole.loop_seconds()))),
                    .change = fmt::format("data.workers={}", std::max<int64_t>(1, 2 * workers)),
                    .gain = of_run(facts, waiting),
                    .undo = fmt::format("data.workers={}", workers)});
}

void loader_takes_processors(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.2;  // of one processor
  const double loop = facts.measured.loop_seconds();
  const double taken = part(facts.loader_seconds, loop);
  if (!(taken >= kLeast) || facts.threads + taken <= facts.processors) return;
  const int64_t workers = facts.config.data.workers;
  const int fewer = std::max(1, facts.processors - static_cast<int>(std::ceil(taken)));
  const bool other_threads = workers <= 1 && fewer < facts.threads;
  if (workers <= 1 && !other_threads) return;
  advice.push_back(
      {.finding = fmt::format("Filling batches takes {:.1f} processors, and the step's {} threads "
                              "have {} to run on.",
                              taken, facts.threads, facts.processors),
       .change = other_threads ? fmt::format("engine.threads={}", fewer) : "data.workers=1",
       .gain = of_run(facts, facts.whole.seconds(RunPhase::step)) *
               std::min(1.0, taken / facts.processors),
       .undo = other_threads ? fmt::format("engine.threads={}", facts.config.engine.threads)
                             : fmt::format("data.workers={}", workers)});
}

void launch_bound(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.15;
  const double idle = idle_seconds(facts);
  const double share = part(idle, facts.whole.seconds(RunPhase::step));
  if (share < kLeast) return;
  const int64_t rows = facts.config.train.batch_size;
  advice.push_back(
      {.finding = fmt::format("For {} of a step no kernel runs: launches are short, and a larger "
                              "batch makes fewer of them a sample.",
                              percent(share)),
       .change = batch_size(2 * rows),
       .gain = of_run(facts, idle) / 2,
       .undo = batch_size(rows)});
}

void at_the_limit(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.95;
  const double reached = roofline_reached(facts);
  if (reached < kLeast) return;
  advice.push_back({.finding = fmt::format("Steps reach {} of the machine's roofline: no kernel "
                                           "can be much faster.",
                                           percent(reached)),
                    .change = "less work a step, or a faster machine"});
}

void bf16_is_faster(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.02;
  if (facts.config.engine.precision != "fp32" || !facts.native_bf16 || facts.bf16_speed <= 1 ||
      facts.config.engine.row_invariant)
    return;
  // Seconds of kernels that arithmetic bounds, and those that arithmetic must take: the rest of a kernel's time stays.
  double arithmetic = 0, roofline = 0;
  for (const AttributionRow& row : facts.whole.rows) {
    if (row.phase != RunPhase::step || !(row.memory_seconds < 0.5 * row.roofline_seconds)) continue;
    arithmetic += row.seconds;
    roofline += std::min(row.seconds, row.roofline_seconds);
  }
  const double gain = of_run(facts, roofline) * (1 - 1 / facts.bf16_speed);
  if (gain < kLeast) return;
  advice.push_back(
      {.finding = fmt::format("Arithmetic bounds {} of the time, and this processor multiplies "
                              "bf16 {:.1f} times as fast as fp32.",
                              percent(of_run(facts, arithmetic)), facts.bf16_speed),
       .change = "engine.precision=bf16",
       .gain = gain,
       .undo = "engine.precision=fp32"});
}

void attention_is_long(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.3;
  double attention = 0;
  for (const AttributionRow& row : facts.whole.rows)
    if (row.phase == RunPhase::step && row.what.find("attention") != row.what.npos)
      attention += row.seconds;
  const double share = part(attention, facts.whole.loop_seconds());
  if (share < kLeast) return;
  Advice found{.finding = fmt::format("Attention takes {} of the loop, and grows with the length "
                                      "of its rows.",
                                      percent(share)),
               .change = "shorter rows, or layers without attention",
               .gain = of_run(facts, attention) / 2};
  // Rows of half the length have half of the attention for as many tokens.
  const ConfigField* const context = find_config_field("model.context");
  if (context != nullptr && context->is_for(facts.config)) {
    Config config = facts.config;
    const ConfigPlace place = context->place(config);
    if (int64_t* const* const length = std::get_if<int64_t*>(&place); length && **length > 1) {
      found.undo = fmt::format("model.context={}", **length);
      found.change = fmt::format("model.context={}", **length / 2);
    }
  }
  advice.push_back(std::move(found));
}

void memory_is_free(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kMostUsed = 0.5;
  constexpr double kLeastGain = 0.01;
  const double used =
      std::max(facts.planned_bytes,
               std::isnan(facts.resident_bytes) ? facts.planned_bytes : facts.resident_bytes);
  if (!(used < kMostUsed * facts.memory_bytes)) return;
  const std::string finding =
      fmt::format("{} of {} of memory are used.", bytes_text(used), bytes_text(facts.memory_bytes));
  if (facts.config.engine.recompute == "full") {
    advice.push_back({.finding = finding + " Values are recomputed that there is room for.",
                      .change = "engine.recompute=off",
                      .undo = "engine.recompute=full"});
    return;
  }
  // A batch twice as large halves what each step costs whatever its size.
  const double gain = of_run(facts, idle_seconds(facts) + facts.whole.seconds(RunPhase::host)) / 2;
  const int64_t rows = facts.config.train.batch_size;
  if (gain >= kLeastGain)
    advice.push_back(
        {.finding = finding + " A larger batch spends less time a sample in gaps and on the host.",
         .change = batch_size(2 * rows),
         .gain = gain,
         .undo = batch_size(rows)});
}

void slow_start(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeastSeconds = 120;
  const double start = facts.whole.seconds(RunPhase::start);
  if (start < kLeastSeconds) return;
  const AttributionRow* longest = nullptr;
  for (const AttributionRow& row : facts.whole.rows)
    if (row.phase == RunPhase::start && (!longest || row.seconds > longest->seconds))
      longest = &row;
  Advice found{
      .finding = fmt::format("The start takes {}, of which {} for: {}.", duration_text(start),
                             duration_text(longest->seconds), longest->what),
      .change =
          "a second start finds caches filled; keep data.cache_dir and "
          "engine.cache_dir on a fast disk",
      .gain = of_run(facts, longest->seconds)};
  if (!facts.config.engine.cache) {
    found.change = "engine.cache=true";
    found.undo = "engine.cache=false";
  }
  advice.push_back(std::move(found));
}

void frequent_evaluations(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.1;
  const double share = of_run(facts, facts.whole.seconds(RunPhase::evaluation));
  const int64_t interval = facts.config.train.eval_interval;
  if (share < kLeast || interval <= 0) return;
  advice.push_back({.finding = fmt::format("Evaluations take {} of the run.", percent(share)),
                    .change = fmt::format("train.eval_interval={}", 2 * interval),
                    .gain = share / 2,
                    .undo = fmt::format("train.eval_interval={}", interval)});
}

void slow_saves(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.05;
  const double share = of_run(facts, facts.whole.seconds(RunPhase::checkpoint, kSave));
  const int64_t interval = facts.config.train.checkpoint_interval;
  if (share < kLeast) return;
  Advice found{.finding =
                   fmt::format("Saving holds the loop up for {} of the run.", percent(share))};
  if (!facts.config.train.background_saves) {
    found.change = "train.background_saves=true";
    found.gain = share;
    found.undo = "train.background_saves=false";
  } else if (interval > 0) {
    found.change = fmt::format("train.checkpoint_interval={}", 2 * interval);
    found.gain = share / 2;
    found.undo = fmt::format("train.checkpoint_interval={}", interval);
  } else {
    return;
  }
  advice.push_back(std::move(found));
}

void busy_host(const RunFacts& facts, std::vector<Advice>& advice) {
  constexpr double kLeast = 0.05;
  const double share = of_run(facts, facts.whole.seconds(RunPhase::host));
  const int64_t interval = facts.config.log.interval;
  if (share < kLeast) return;
  advice.push_back(
      {.finding = fmt::format("Lines, metrics and checks between steps take {}.", percent(share)),
       .change = fmt::format("log.interval={}", 10 * interval),
       .gain = share,
       .undo = fmt::format("log.interval={}", interval)});
}

void switches_at_rest(const RunFacts& facts, std::vector<Advice>& advice) {
  for (const InactiveSwitch& each : facts.inactive)
    advice.push_back({.finding = fmt::format("{} {}.", each.setting, each.why),
                      .change = each.without,
                      .undo = each.setting});
}

constexpr std::array kRules = {
    AdviceRule{"input-bound", "the loop waits for batches, 5 % of its time or more", input_bound},
    AdviceRule{"loader-bound", "filling batches and the step's threads share processors",
               loader_takes_processors},
    AdviceRule{"launch-bound", "no kernel runs for 15 % of a step or more", launch_bound},
    AdviceRule{"at-the-limit", "steps reach 95 % of their roofline", at_the_limit},
    AdviceRule{"bf16", "arithmetic bounds an fp32 run, and bf16 is faster here", bf16_is_faster},
    AdviceRule{"attention", "attention takes 30 % of the loop or more", attention_is_long},
    AdviceRule{"memory-free", "half of the memory is free, and a larger batch would gain",
               memory_is_free},
    AdviceRule{"slow-start", "the start takes two minutes or more", slow_start},
    AdviceRule{"evaluations", "evaluations take 10 % of the run or more", frequent_evaluations},
    AdviceRule{"saves", "saving holds the loop up for 5 % of the run or more", slow_saves},
    AdviceRule{"host", "what stands between steps takes 5 % of the run or more", busy_host},
    AdviceRule{"inactive", "a setting asks for what does not happen", switches_at_rest},
};

}  // namespace

std::span<const AdviceRule> speed_rules() { return kRules; }

}  // namespace fullbore

#include "fullbore/train/memory_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "fullbore/base/bf16_note.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/config_keys.h"
#include "fullbore/train/storage_keys.h"

namespace fullbore {
namespace {

// Where no budget is given, the rest is left to others, and to the page cache.
constexpr double kShareOfMemory = 0.9;
constexpr int64_t kLargestBatch = 65536;
constexpr size_t kMostRemedies = 3;
constexpr const char* kLowPrecision = "engine.precision=bf16";

std::string gigabytes(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::optional<double> unit_bytes(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{{"", 1},
                                                                                 {"B", 1},
                                                                                 {"KiB", 0x1p10},
                                                                                 {"MiB", 0x1p20},
                                                                                 {"GiB", 0x1p30},
                                                                                 {"TiB", 0x1p40},
                                                                                 {"MB", 1e6},
                                                                                 {"GB", 1e9}}};
  for (const auto& [name, bytes] : kUnits)
    if (name == unit) return bytes;
  return std::nullopt;
}

struct Budget {
  double number = 0;  ///< of bytes, or a share
  bool is_share = false;
};

Budget parse_budget(const std::string& text) {
  if (text.empty()) return {kShareOfMemory, true};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const std::optional<double> bytes = unit_bytes(unit);
  if (error != std::errc() || !bytes || !(number > 0) || number * *bytes > 0x1p60)
    throw UsageError(fmt::format(
        "engine.memory_budget is '{}'; bytes such as 6GiB or 1500MB were expected, or a "
        "share of the memory such as 0.5",
        text));
  if (unit.empty() && number <= 1) return {number, true};
  return {number * *bytes, false};
}

/// One run's search for settings that fit.
class Fitting {
 public:
  Fitting(const Config& config, const RunPlanning& planning)
      : given_(config), planning_(planning), budget_(memory_budget_bytes(config)) {}

  FittedConfig run() {
    FittedConfig fitted = search();
    Config& config = fitted.config;
    if (!has_open_count(config)) return fitted;
    config.engine.parallel_microbatches = fitted.run.parallel;
    if (needs_whole_batch(config))
      fitted.decisions.emplace_back(
          config.engine.accumulate > 1
              ? "engine.parallel_microbatches=1: the model normalises by statistics of each "
                "microbatch, and hands running ones from one to the next"
              : "engine.parallel_microbatches=1: the model normalises by statistics of the whole "
                "batch");
    if (!budget_is_of_the_job(given_)) return fitted;
    const int64_t best = planning_.parallel_counts(config).front();
    if (fitted.run.parallel != best)
      fitted.decisions.push_back(
          fmt::format("engine.parallel_microbatches={}: {} would not keep to {}",
                      fitted.run.parallel, best, gigabytes(budget_)));
    return fitted;
  }

 private:
  FittedConfig search() {
    if (given_.train.batch_size == 0) return solve_batch();
    if (given_.engine.accumulate == 0) return solve_parts();
    PlannedRun run = plan(given_);
    if (fits(run)) return {given_, run, {}};
    return degrade(run);
  }

  bool needs_whole_batch(const Config& config) const {
    return planning_.needs_whole_batch && planning_.needs_whole_batch(config);
  }

  bool has_open_count(const Config& config) const {
    return config.engine.parallel_microbatches == 0 && planning_.parallel_counts;
  }

  // With microbatches as the job and its budget decide, which the machine must not: where even one thread would exceed
  // the budget, the next ones are taken; where only this machine's threads do, the run does not fit here.
  PlannedRun plan(const Config& config) const {
    if (!has_open_count(config)) {
      PlannedRun run = planning_.here(config);
      run.parallel = parallel(config);
      return run;
    }
    const std::vector<int64_t> counts = planning_.parallel_counts(config);
    Config each = config;
    const auto with = [&](int64_t count, const RunPlanner& planner) {
      each.engine.parallel_microbatches = count;
      PlannedRun run = planner(each);
      run.parallel = count;
      return run;
    };
    const PlannedRun best = with(counts.front(), planning_.here);
    if (fits(best) || !budget_is_of_the_job(given_)) return best;
    for (const int64_t count : counts)
      if (fits(with(count, planning_.least)))
        return count == counts.front() ? best : with(count, planning_.here);
    return best;
  }

  /// Of settings that nobody asked for: those that the model refuses are none.
  std::optional<PlannedRun> try_plan(const Config& config) const {
    try {
      return plan(config);
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }

  // What is pinned cannot be swapped out: no more than the process may use.
  bool fits(const PlannedRun& run) const {
    return run.resident_bytes() <= budget_ &&
           (run.host_bytes == 0 || run.host_bytes <= memory_limit_bytes());
  }
  std::string within() const { return fmt::format("within {}", gigabytes(budget_)); }

  // Batches that go into microbatches are tried first, for those are faster.
  static constexpr std::array<int64_t, 3> kGranularities = {4, 2, 1};

  // Bytes grow with the batch almost linearly: where the line through two plans meets the budget is the
  // first guess, and bisection needs few plans from there.
  FittedConfig solve_batch() {
    if (given_.engine.accumulate == 0)
      throw UsageError("train.batch_size and engine.accumulate are both auto; give one of them");
    Config config = given_;
    int64_t unit = batch_unit(given_);
    const auto planned = [&](int64_t units) {
      config.train.batch_size = units * unit;
      return plan(config);
    };
    if (has_open_count(given_) && !given_.optim.noise_scale) {
      const int64_t whole = unit;
      for (const int64_t rows : kGranularities) {
        unit = whole * rows;
        if (rows == 1 || fits(planned(1))) break;
      }
    }
    PlannedRun one = planned(1);
    std::vector<std::string> decisions;
    // Parts of a batch are whole rows, so of the ways to degrade only this makes the smallest one smaller.
    if (!fits(one) && may_recompute()) {
      config.engine.recompute = "auto";
      decisions.push_back("engine.recompute=auto: " + too_large(one));
      one = planned(1);
    }
    if (!fits(one)) refuse(config, one);
    const PlannedRun two = planned(2);
    const double slope =
        std::max(1.0, static_cast<double>(two.resident_bytes() - one.resident_bytes()));
    const int64_t most = kLargestBatch / unit;
    int64_t low = 1;          // fits
    int64_t high = most + 1;  // does not, or is not allowed
    auto guess =
        1 + static_cast<int64_t>(static_cast<double>(budget_ - one.resident_bytes()) / slope);
    for (int64_t step = 1; high - low > 1; step *= 2) {
      guess = std::clamp(guess, low + 1, high - 1);
      const bool good = fits(planned(guess));
      (good ? low : high) = guess;
      // Outwards from the guess until there is a bound on either side, then in halves.
      guess = low == 1 ? high - step : high == most + 1 ? low + step : low + (high - low) / 2;
    }
    const PlannedRun run = planned(low);
    const std::string which = unit == 1 ? "" : fmt::format(" multiple of {}", unit);
    decisions.push_back(
        fmt::format("train.batch_size={}: the largest{} {}", low * unit, which, within()));
    return {config, run, decisions};
  }

  bool may_recompute() const {
    const std::vector<std::string>& ways = given_.engine.degrade;
    return given_.engine.recompute == "off" &&
           std::find(ways.begin(), ways.end(), "recompute") != ways.end();
  }

  static int64_t parallel(const Config& config) {
    return std::max<int64_t>(1, config.engine.parallel_microbatches);
  }

  // Every batch is a multiple of it: parts are equal, and the noise scale compares halves.
  static int64_t batch_unit(const Config& config) {
    return config.engine.accumulate * parallel(config) * (config.optim.noise_scale ? 2 : 1);
  }

  FittedConfig solve_parts() {
    Config config = given_;
    config.engine.accumulate = 1;
    const PlannedRun whole = plan(config);
    if (fits(whole)) return {config, whole, {"engine.accumulate=1: the whole batch fits"}};
    const std::optional<PlannedRun> run = fewest_parts(config, whole.rows);
    if (!run) refuse(config, whole);
    return {config, *run, {parts_text(config)}};
  }

  std::string parts_text(const Config& config) const {
    return fmt::format("engine.accumulate={}: the fewest parts {}", config.engine.accumulate,
                       within());
  }

  // Sets engine.accumulate to the least divisor of the batch's rows that fits.
  std::optional<PlannedRun> fewest_parts(Config& config, int64_t rows) {
    if (config.optim.noise_scale || needs_whole_batch(config)) return std::nullopt;
    const Config before = config;
    for (int64_t parts = before.engine.accumulate + 1; parts <= rows; ++parts) {
      if (rows % (parts * parallel(config)) != 0) continue;
      config.engine.accumulate = parts;
      if (const std::optional<PlannedRun> run = try_plan(config); run && fits(*run)) return run;
    }
    config = before;
    return std::nullopt;
  }

  FittedConfig degrade(const PlannedRun& asked) {
    FittedConfig result{given_, asked, {}};
    for (const std::string& way : given_.engine.degrade) {
      if (way == "recompute" && result.config.engine.recompute == "off") {
        result.config.engine.recompute = "auto";
        result.run = plan(result.config);
        result.decisions.push_back("engine.recompute=auto: " + too_large(asked));
      } else if (way == "accumulate") {
        if (const auto run = fewest_parts(result.config, result.run.rows)) {
          result.run = *run;
          result.decisions.push_back(parts_text(result.config));
        }
      }
      if (fits(result.run)) return result;
    }
    refuse(given_, asked);
  }

  std::string too_large(const PlannedRun& run) const {
    if (own_memory_bytes(given_.engine.device))
      return fmt::format(
          "the run would take {} of {}'s memory{}, {} are allowed", gigabytes(run.bytes),
          given_.engine.device,
          run.host_bytes > 0 ? fmt::format(" and {} of the host's", gigabytes(run.host_bytes)) : "",
          gigabytes(budget_));
    return fmt::format("the run would take {} ({} planned, {} for the process), {} are allowed",
                       gigabytes(run.resident_bytes()), gigabytes(run.bytes),
                       gigabytes(run.process.bytes()), gigabytes(budget_));
  }

  struct Remedy {
    std::string setting;
    PlannedRun run;
    double cost = 0;  ///< time per sequence, relative
  };

  [[noreturn]] void refuse(const Config& config, const PlannedRun& asked) {
    std::vector<Remedy> remedies = find_remedies(config, asked);
    const auto per_sequence = [](const PlannedRun& run, int64_t batch) {
      return run.seconds / static_cast<double>(std::max<int64_t>(1, batch));
    };
    for (Remedy& remedy : remedies) {
      remedy.cost = per_sequence(remedy.run, batches_[remedy.setting]) /
                    per_sequence(asked, config.train.batch_size);
      // The bytes that it saves are not what widened matmuls wait for.
      if (remedy.setting == kLowPrecision && !bf16_note(this_processor()).empty())
        remedy.cost = std::max(remedy.cost, 1.0);
    }
    std::stable_sort(remedies.begin(), remedies.end(),
                     [](const Remedy& a, const Remedy& b) { return a.cost < b.cost; });
    std::string text = fmt::format("memory: {} (engine.memory_budget).", too_large(asked));
    text += remedies.empty()
                ? asked.process.bytes() >= budget_
                      ? " The process alone takes more than that."
                      : " No setting of the engine makes it fit: the model or its context must be "
                        "smaller."
                : " What would fit, cheapest first:";
    for (size_t i = 0; i < std::min(kMostRemedies, remedies.size()); ++i)
      text +=
          fmt::format("\n  {:<48} {:>10}  {:+.0f} % time per sequence", remedies[i].setting,
                      gigabytes(remedies[i].run.resident_bytes()), 100 * (remedies[i].cost - 1));
    throw MemoryError(text + budget_text(asked));
  }

  // Sets train.batch_size to the largest below it that fits, nearly: halves it, and then a few times what is left open.
  std::optional<PlannedRun> largest_batch(Config& config) const {
    constexpr int kMostSteps = 5;
    const int64_t given = config.train.batch_size;
    int64_t unit = batch_unit(config);
    if (has_open_count(config) && given >= 4 * unit * kGranularities[0]) unit *= kGranularities[0];
    const auto that_fits = [&](int64_t units) -> std::optional<PlannedRun> {
      config.train.batch_size = units * unit;
      std::optional<PlannedRun> run = try_plan(config);
      return run && fits(*run) ? run : std::nullopt;
    };
    int64_t high = (given + unit - 1) / unit;  // does not fit
    int64_t low = high / 2;
    std::optional<PlannedRun> found;
    for (; low > 0; high = low, low /= 2)
      if ((found = that_fits(low))) break;
    for (int step = 0; step < kMostSteps && low > 0 && high - low > 1; ++step) {
      const int64_t middle = low + (high - low) / 2;
      const std::optional<PlannedRun> run = that_fits(middle);
      if (run) found = run;
      (run ? low : high) = middle;
    }
    config.train.batch_size = low * unit;
    return found;
  }

  // With which all could stay as it is, if there is as much; "" if not. The plan gets 63 of 64 parts of its share.
  std::string budget_text(const PlannedRun& asked) const {
    constexpr int64_t kMiB = 1 << 20;
    const int64_t needed =
        (asked.process.bytes() + asked.bytes + asked.bytes / 63 + 64 + kMiB - 1) / kMiB;
    if (needed > run_memory_bytes(given_) / kMiB) return "";
    return fmt::format("\n  engine.memory_budget={}MiB would do for all as it is", needed);
  }

  std::vector<Remedy> find_remedies(const Config& config, const PlannedRun& asked) {
    const int64_t rows = asked.rows;
    std::vector<Remedy> remedies;
    const auto offer = [&](const std::string& setting, const Config& changed,
                           const std::optional<PlannedRun>& run) {
      if (!run || !fits(*run)) return;
      batches_[setting] = changed.train.batch_size;
      remedies.push_back({setting, *run, 0});
    };
    Config changed = config;
    const bool keeps = config.engine.recompute == "off";
    if (keeps) {
      changed.engine.recompute = "auto";
      offer("engine.recompute=auto", changed, try_plan(changed));
    }
    changed = config;
    if (const auto run = fewest_parts(changed, rows))
      offer(fmt::format("engine.accumulate={}", changed.engine.accumulate), changed, run);
    changed = config;
    for (const ConfigKeys& keys : registered_config_keys())
      if (keys.lighter)
        for (const LighterConfig& lighter : keys.lighter(config))
          offer(lighter.setting, lighter.config, try_plan(lighter.config));
    changed = config;
    if (!has_moments_in_host(config) && own_memory_bytes(config.engine.device)) {
      changed.get<StorageKeys>().offload = "optimizer";
      offer("engine.offload=optimizer", changed, try_plan(changed));
    }
    changed = config;
    if (config.train.background_saves) {
      changed.train.background_saves = false;
      offer("train.background_saves=false", changed, try_plan(changed));
    }
    changed = config;
    if (config.engine.precision == "fp32" || config.engine.precision == "tf32") {
      changed.engine.precision = "bf16";
      offer(kLowPrecision, changed, try_plan(changed));
    }
    if (planning_.parallel_counts && !needs_whole_batch(config))
      for (const int64_t count : planning_.parallel_counts(config)) {
        changed = config;
        changed.engine.parallel_microbatches = count;
        if (count != asked.parallel)
          offer(fmt::format("engine.parallel_microbatches={}", count), changed, try_plan(changed));
      }
    changed = config;
    if (std::ranges::none_of(registered_config_keys(), [&](const ConfigKeys& keys) {
          return keys.settles_rows && keys.settles_rows(config);
        }))
      if (const auto run = largest_batch(changed))
        offer(fmt::format("train.batch_size={}", changed.train.batch_size), changed, run);
    if (remedies.empty() && keeps) {  // together
      changed = config;
      changed.engine.recompute = "auto";
      if (const auto run = fewest_parts(changed, rows))
        offer(fmt::format("engine.recompute=auto engine.accumulate={}", changed.engine.accumulate),
              changed, run);
    }
    return remedies;
  }

  const Config& given_;
  const RunPlanning& planning_;
  const int64_t budget_;
  std::map<std::string, int64_t> batches_;  // of the remedies, by setting
};

}  // namespace

int64_t run_memory_bytes(const Config& config) {
  return own_memory_bytes(config.engine.device).value_or(memory_limit_bytes());
}

int64_t memory_budget_bytes(const Config& config) {
  const Budget budget = parse_budget(config.engine.memory_budget);
  return static_cast<int64_t>(budget.is_share
                                  ? budget.number * static_cast<double>(run_memory_bytes(config))
                                  : budget.number);
}

bool budget_is_of_the_job(const Config& config) {
  return !parse_budget(config.engine.memory_budget).is_share;
}

int64_t plan_memory_bytes(const Config& config, const ProcessMemory& process) {
  return std::max<int64_t>(64, memory_budget_bytes(config) - process.bytes()) / 64 * 63;
}

FittedConfig fit_memory(const Config& config, const RunPlanning& planning) {
  return Fitting(config, planning).run();
}

}  // namespace fullbore

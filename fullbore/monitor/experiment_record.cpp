#include "fullbore/monitor/experiment_record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
/// Of what is counted: products of two and sums of many are whole numbers that fit.
constexpr int64_t kMostCount = 1'000'000'000;
double hundredths(double value) { return std::nearbyint(value * 100) / 100; }

/// Reads fields of one object of a file; the first that is wrong stays.
class Fields {
 public:
  Fields(const Json& json, std::string path, std::string object)
      : json_(json), path_(std::move(path)), object_(std::move(object)) {}

  void read(const char* name, std::string& value) {
    if (const Json* field = find(name, true); field != nullptr) take(*field, name, value);
  }
  void read(const char* name, int64_t& value) {
    if (const Json* field = find(name, true); field != nullptr) take(*field, name, value);
  }
  void read(const char* name, double& value) {
    if (const Json* field = find(name, true); field != nullptr) take(*field, name, value);
  }
  template <class Value>
  void read_if_any(const char* name, Value& value) {
    if (const Json* field = find(name, false); field != nullptr) take(*field, name, value);
  }
  /// A whole number that counts nothing.
  void read_seed_if_any(const char* name, int64_t& value) {
    const Json* const field = find(name, false);
    if (field == nullptr) return;
    field->is_number_integer() ? void(value = field->get<int64_t>())
                               : refuse(name, "a whole number");
  }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  const Json* find(const char* name, bool needed) {
    if (failure_) return nullptr;
    const auto found = json_.find(name);
    if (found != json_.end() && !found->is_null()) return &*found;
    if (!needed) return nullptr;
    std::vector<std::string> names;
    for (const auto& [key, value] : json_.items()) names.push_back(key);
    failure_ = Failure{
        fmt::format("{}: {}has no field '{}'.{}", path_, object_, name, did_you_mean(name, names))};
    return nullptr;
  }
  void refuse(const char* name, const char* wanted) {
    failure_ = Failure{fmt::format("{}: {}'{}' is not {}", path_, object_, name, wanted)};
  }
  void take(const Json& field, const char* name, std::string& value) {
    field.is_string() ? void(value = field.get<std::string>()) : refuse(name, "a text");
  }
  void take(const Json& field, const char* name, int64_t& value) {
    if (!field.is_number_integer()) return refuse(name, "a whole number");
    if (field < 0 || field > kMostCount) return refuse(name, "in [0, 1000000000]");
    value = field.get<int64_t>();
  }
  void take(const Json& field, const char* name, double& value) {
    field.is_number() ? void(value = field.get<double>()) : refuse(name, "a number");
  }
  void take(const Json& field, const char* name, std::map<std::string, std::string>& value) {
    if (!field.is_object()) return refuse(name, "an object of texts");
    for (const auto& [key, each] : field.items()) {
      if (!each.is_string()) return refuse(name, "an object of texts");
      value.emplace(key, each.get<std::string>());
    }
  }
  void take(const Json& field, const char* name, bool& value) {
    field.is_boolean() ? void(value = field.get<bool>()) : refuse(name, "true or false");
  }

  const Json& json_;
  std::string path_;
  std::string object_;
  std::optional<Failure> failure_;
};

}  // namespace

RecordDifferences record_differences(const ExperimentRecord& record,
                                     const ExperimentRecord& baseline) {
  RecordDifferences differences;
  const auto compare = [&](const std::string& key, const std::string& now, const std::string& then,
                           bool is_told) {
    if (now == then) return;
    (is_told ? differences.told : differences.refused)
        .push_back(fmt::format("{} is {}, not {}", key, now.empty() ? "not there" : now,
                               then.empty() ? "not there" : then));
  };
  if (record.settings.empty() || baseline.settings.empty()) {
    compare("config.batch_size", std::to_string(record.batch_size),
            std::to_string(baseline.batch_size), false);
    compare("config.seq_len", std::to_string(record.seq_len), std::to_string(baseline.seq_len),
            false);
    compare("config.precision", record.precision, baseline.precision, true);
  } else {
    std::map<std::string, std::pair<std::string, std::string>> both;
    for (const auto& [key, value] : record.settings) both[key].first = value;
    for (const auto& [key, value] : baseline.settings) both[key].second = value;
    for (const auto& [key, values] : both) {
      const bool is_told =
          key.starts_with("engine.") || key.starts_with("run.") || key.starts_with("log.");
      compare(key, values.first, values.second, is_told);
    }
  }
  if (!record.data.empty() && !baseline.data.empty())
    compare("the data", record.data, baseline.data, false);
  if (record.steps > 0 && baseline.steps > 0)
    compare("steps", std::to_string(record.steps), std::to_string(baseline.steps), false);
  return differences;
}

VersusBaseline versus_baseline(const ExperimentRecord& record, const ExperimentRecord& baseline) {
  const bool by_samples =
      std::isfinite(record.throughput_samples_s) && std::isfinite(baseline.throughput_samples_s);
  const double speedup = by_samples ? record.throughput_samples_s / baseline.throughput_samples_s
                                    : record.throughput_tok_s / baseline.throughput_tok_s;
  return {hundredths(speedup), record.final_loss - baseline.final_loss,
          record.val_loss - baseline.val_loss};
}

namespace {

/// Samples where a step has no sequences; else tokens.
bool counts_samples(const ExperimentRecord& record) { return record.seq_len == 0; }
double rate_of(const ExperimentRecord& record) {
  return counts_samples(record) ? record.throughput_samples_s : record.throughput_tok_s;
}
double wanted_of(const ExperimentRecord& record) {
  return static_cast<double>(counts_samples(record) ? record.batch_size : record.tokens_per_step());
}

}  // namespace

bool can_be_inconsistent(const ExperimentRecord& record) {
  return record.full_rows && std::isfinite(rate_of(record) * record.time_per_step_ms) &&
         wanted_of(record) > 0;
}

std::optional<std::string> inconsistency(const ExperimentRecord& record) {
  if (!can_be_inconsistent(record)) return {};
  const double rate = rate_of(record), wanted = wanted_of(record);
  const double found = rate * record.time_per_step_ms / 1000;
  if (std::abs(found - wanted) <= 0.02 * wanted) return {};
  const char* const unit = counts_samples(record) ? "samples" : "tokens";
  return fmt::format(
      "{:.0f} {} a second in steps of {:.4g} ms are {:.0f} {} a step, not {}: a step would take "
      "{:.1f} ms",
      rate, unit, record.time_per_step_ms, found, unit,
      counts_samples(record) ? fmt::format("{}", record.batch_size)
                             : fmt::format("{} x {}", record.batch_size, record.seq_len),
      1000 * wanted / rate);
}

QualityGate quality_gate(const ExperimentRecord& record, const ExperimentRecord& baseline) {
  constexpr double kMostDelta = 0.05, kMuch = 1.1;
  QualityGate gate;
  const VersusBaseline versus = versus_baseline(record, baseline);
  const bool is_of_validation = std::isfinite(versus.val_loss_delta);
  const double delta = is_of_validation ? versus.val_loss_delta : versus.loss_delta;
  if (!std::isfinite(delta)) return gate;
  gate.known = true;
  // Losses are differences of printed numbers: what is 0.05 in decimals is no more than that.
  gate.passed = delta <= kMostDelta + 1e-9;
  const double now = is_of_validation ? record.val_loss : record.final_loss;
  const double then = is_of_validation ? baseline.val_loss : baseline.final_loss;
  if (now > kMuch * then)
    gate.flags.push_back(fmt::format("the {} is {:.0f} % above the baseline's",
                                     is_of_validation ? "validation loss" : "loss",
                                     100 * (now / then - 1)));
  return gate;
}

void take_sensors(const SensorSummary& sensors, ExperimentRecord& record) {
  constexpr double kPercent = 100;
  constexpr double kMegabytesOfMebibyte = 1.048576;
  record.gpu_util_pct = kPercent * sensors.device_utilisation;
  record.vram_mb = kMegabytesOfMebibyte * sensors.device_mib;
  record.power_w = sensors.watts;
  record.energy_j_per_token = sensors.watts / record.throughput_tok_s;
  record.temp_c = sensors.highest_celsius;
  record.clock_mhz = sensors.clock_mhz;
  record.throttled = sensors.throttled;
}

ExperimentRecord mean_of(const std::vector<ExperimentRecord>& records) {
  ExperimentRecord mean = records.front();
  const auto count = static_cast<double>(records.size());
  mean.repeats = 0;
  double seconds_per_token = 0, seconds_per_sample = 0;
  for (const ExperimentRecord& each : records) {
    mean.repeats += each.repeats;
    seconds_per_token += 1 / each.throughput_tok_s / count;
    seconds_per_sample += 1 / each.throughput_samples_s / count;
  }
  for (double ExperimentRecord::*figure :
       {&ExperimentRecord::time_per_step_ms, &ExperimentRecord::step_ms_p10,
        &ExperimentRecord::step_ms_p50, &ExperimentRecord::step_ms_p90,
        &ExperimentRecord::memory_mb, &ExperimentRecord::gpu_util_pct, &ExperimentRecord::vram_mb,
        &ExperimentRecord::power_w, &ExperimentRecord::energy_j_per_token,
        &ExperimentRecord::temp_c, &ExperimentRecord::clock_mhz, &ExperimentRecord::throttled,
        &ExperimentRecord::final_loss, &ExperimentRecord::val_loss}) {
    mean.*figure = 0;
    for (const ExperimentRecord& each : records) mean.*figure += each.*figure / count;
  }
  mean.throughput_tok_s = 1 / seconds_per_token;
  mean.throughput_samples_s = 1 / seconds_per_sample;
  return mean;
}

Json to_json(const ExperimentRecord& record, const ExperimentRecord* baseline) {
  Json json = {{"name", record.name},
               {"date", record.date},
               {"config",
                {{"batch_size", record.batch_size},
                 {"num_workers", record.num_workers},
                 {"seq_len", record.seq_len},
                 {"full_rows", record.full_rows},
                 {"precision", record.precision},
                 {"fused", record.fused}}},
               {"metrics",
                {{"throughput_tok_s", number(record.throughput_tok_s)},
                 {"throughput_samples_s", number(record.throughput_samples_s)},
                 {"gpu_util_pct", number(record.gpu_util_pct)},
                 {"vram_mb", number(record.vram_mb)},
                 {"memory_mb", number(record.memory_mb)},
                 {"final_loss", number(record.final_loss)},
                 {"val_loss", number(record.val_loss)},
                 {"time_per_step_ms", number(record.time_per_step_ms)},
                 {"step_ms_p10", number(record.step_ms_p10)},
                 {"step_ms_p50", number(record.step_ms_p50)},
                 {"step_ms_p90", number(record.step_ms_p90)},
                 {"power_w", number(record.power_w)},
                 {"energy_j_per_token", number(record.energy_j_per_token)},
                 {"temp_c", number(record.temp_c)},
                 {"clock_mhz", number(record.clock_mhz)},
                 {"throttled", number(record.throttled)}}},
               {"steps", record.steps},
               {"repeats", record.repeats},
               {"rng_key", record.rng_key},
               {"split", record.split},
               {"hardware", record.hardware},
               {"build", record.build}};
  if (!record.settings.empty()) {
    json["model"] = record.model;
    json["data"] = record.data;
    json["settings"] = record.settings;
  }
  const std::optional<std::string> wrong = inconsistency(record);
  json["consistent"] = can_be_inconsistent(record) ? Json(!wrong.has_value()) : Json();
  if (wrong) json["inconsistency"] = *wrong;
  if (baseline == nullptr) return json;
  const VersusBaseline versus = versus_baseline(record, *baseline);
  const QualityGate gate = quality_gate(record, *baseline);
  json["vs_baseline"] = {{"name", baseline->name},
                         {"speedup", number(versus.speedup)},
                         {"loss_delta", number(versus.loss_delta)},
                         {"val_loss_delta", number(versus.val_loss_delta)}};
  const RecordDifferences differences = record_differences(record, *baseline);
  if (!differences.told.empty()) json["vs_baseline"]["differs"] = differences.told;
  if (!differences.refused.empty()) json["vs_baseline"]["differs_despite"] = differences.refused;
  json["gate"] = gate.known ? Json(gate.passed ? "passed" : "failed") : Json();
  if (!gate.flags.empty()) json["flags"] = gate.flags;
  return json;
}

Result<ExperimentRecord> read_experiment_record(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return Failure{text.error()};
  const Result<Json> parsed = parse_ordered_json(text.value());
  if (!parsed.ok()) return Failure{fmt::format("{}: {}", path, parsed.error())};
  const Json& json = parsed.value();
  if (!json.is_object())
    return Failure{
        fmt::format("{}: is no JSON object; a record of `fullbore record` was expected", path)};
  ExperimentRecord record;
  Fields top(json, path, "");
  top.read("name", record.name);
  top.read_if_any("date", record.date);
  top.read_if_any("steps", record.steps);
  top.read_if_any("repeats", record.repeats);
  top.read_seed_if_any("rng_key", record.rng_key);
  top.read_if_any("split", record.split);
  top.read_if_any("hardware", record.hardware);
  top.read_if_any("build", record.build);
  top.read_if_any("model", record.model);
  top.read_if_any("data", record.data);
  top.read_if_any("settings", record.settings);
  if (top.failure()) return *top.failure();
  for (const char* name : {"config", "metrics"})
    if (!json.contains(name) || !json[name].is_object())
      return Failure{fmt::format("{}: has no object '{}'", path, name)};
  Fields config(json["config"], path, "config ");
  config.read("batch_size", record.batch_size);
  config.read_if_any("num_workers", record.num_workers);
  config.read("seq_len", record.seq_len);
  config.read_if_any("full_rows", record.full_rows);
  config.read_if_any("precision", record.precision);
  config.read_if_any("fused", record.fused);
  if (config.failure()) return *config.failure();
  Fields metrics(json["metrics"], path, "metrics ");
  // A model of samples has those alone.
  metrics.read_if_any("throughput_samples_s", record.throughput_samples_s);
  if (std::isfinite(record.throughput_samples_s))
    metrics.read_if_any("throughput_tok_s", record.throughput_tok_s);
  else
    metrics.read("throughput_tok_s", record.throughput_tok_s);
  metrics.read("time_per_step_ms", record.time_per_step_ms);
  metrics.read("final_loss", record.final_loss);
  metrics.read_if_any("val_loss", record.val_loss);
  metrics.read_if_any("gpu_util_pct", record.gpu_util_pct);
  metrics.read_if_any("vram_mb", record.vram_mb);
  metrics.read_if_any("power_w", record.power_w);
  metrics.read_if_any("energy_j_per_token", record.energy_j_per_token);
  metrics.read_if_any("temp_c", record.temp_c);
  metrics.read_if_any("clock_mhz", record.clock_mhz);
  metrics.read_if_any("throttled", record.throttled);
  metrics.read_if_any("memory_mb", record.memory_mb);
  metrics.read_if_any("step_ms_p10", record.step_ms_p10);
  metrics.read_if_any("step_ms_p50", record.step_ms_p50);
  metrics.read_if_any("step_ms_p90", record.step_ms_p90);
  if (metrics.failure()) return *metrics.failure();
  return record;
}

}  // namespace fullbore

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
  void take(const Json& field, const char* name, bool& value) {
    field.is_boolean() ? void(value = field.get<bool>()) : refuse(name, "true or false");
  }

  const Json& json_;
  std::string path_;
  std::string object_;
  std::optional<Failure> failure_;
};

}  // namespace

VersusBaseline versus_baseline(const ExperimentRecord& record, const ExperimentRecord& baseline) {
  return {hundredths(record.throughput_tok_s / baseline.throughput_tok_s),
          record.final_loss - baseline.final_loss};
}

std::optional<std::string> inconsistency(const ExperimentRecord& record) {
  const double tokens = record.throughput_tok_s * record.time_per_step_ms / 1000;
  const auto wanted = static_cast<double>(record.tokens_per_step());
  if (!std::isfinite(tokens) || wanted <= 0) return {};
  if (std::abs(tokens - wanted) <= 0.02 * wanted) return {};
  return fmt::format(
      "{:.0f} tokens a second in steps of {:.4g} ms are {:.0f} tokens a step, not {} x {}: a step "
      "would take {:.1f} ms",
      record.throughput_tok_s, record.time_per_step_ms, tokens, record.batch_size, record.seq_len,
      1000 * wanted / record.throughput_tok_s);
}

QualityGate quality_gate(const ExperimentRecord& record, const ExperimentRecord& baseline) {
  constexpr double kMostDelta = 0.05;
  QualityGate gate;
  const double delta = versus_baseline(record, baseline).loss_delta;
  if (!std::isfinite(delta)) return gate;
  gate.known = true;
  // Losses are differences of printed numbers: what is 0.05 in decimals is no more than that.
  gate.passed = std::abs(delta) <= kMostDelta + 1e-9;
  if (record.final_loss > 1.1 * baseline.final_loss)
    gate.flags.push_back(fmt::format("the loss is {:.0f} % above the baseline's",
                                     100 * (record.final_loss / baseline.final_loss - 1)));
  return gate;
}

ExperimentRecord mean_of(const std::vector<ExperimentRecord>& records) {
  ExperimentRecord mean = records.front();
  const auto count = static_cast<double>(records.size());
  mean.repeats = 0;
  double seconds_per_token = 0;
  for (const ExperimentRecord& each : records) {
    mean.repeats += each.repeats;
    seconds_per_token += 1 / each.throughput_tok_s / count;
  }
  for (double ExperimentRecord::*figure :
       {&ExperimentRecord::time_per_step_ms, &ExperimentRecord::step_ms_p10,
        &ExperimentRecord::step_ms_p50, &ExperimentRecord::step_ms_p90,
        &ExperimentRecord::memory_mb, &ExperimentRecord::gpu_util_pct,
        &ExperimentRecord::final_loss, &ExperimentRecord::val_loss}) {
    mean.*figure = 0;
    for (const ExperimentRecord& each : records) mean.*figure += each.*figure / count;
  }
  mean.throughput_tok_s = 1 / seconds_per_token;
  return mean;
}

Json to_json(const ExperimentRecord& record, const ExperimentRecord* baseline) {
  Json json = {{"name", record.name},
               {"date", record.date},
               {"config",
                {{"batch_size", record.batch_size},
                 {"num_workers", record.num_workers},
                 {"seq_len", record.seq_len},
                 {"precision", record.precision},
                 {"fused", record.fused}}},
               {"metrics",
                {{"throughput_tok_s", number(record.throughput_tok_s)},
                 {"gpu_util_pct", number(record.gpu_util_pct)},
                 {"vram_mb", nullptr},
                 {"memory_mb", number(record.memory_mb)},
                 {"final_loss", number(record.final_loss)},
                 {"val_loss", number(record.val_loss)},
                 {"time_per_step_ms", number(record.time_per_step_ms)},
                 {"step_ms_p10", number(record.step_ms_p10)},
                 {"step_ms_p50", number(record.step_ms_p50)},
                 {"step_ms_p90", number(record.step_ms_p90)},
                 {"power_w", nullptr},
                 {"energy_j_per_token", nullptr},
                 {"temp_c", nullptr},
                 {"clock_mhz", nullptr},
                 {"throttled", nullptr}}},
               {"steps", record.steps},
               {"repeats", record.repeats},
               {"rng_key", record.rng_key},
               {"split", record.split},
               {"hardware", record.hardware},
               {"build", record.build}};
  const std::optional<std::string> wrong = inconsistency(record);
  json["consistent"] = !wrong.has_value();
  if (wrong) json["inconsistency"] = *wrong;
  if (baseline == nullptr) return json;
  const VersusBaseline versus = versus_baseline(record, *baseline);
  const QualityGate gate = quality_gate(record, *baseline);
  json["vs_baseline"] = {{"name", baseline->name},
                         {"speedup", number(versus.speedup)},
                         {"loss_delta", number(versus.loss_delta)}};
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
  if (top.failure()) return *top.failure();
  for (const char* name : {"config", "metrics"})
    if (!json.contains(name) || !json[name].is_object())
      return Failure{fmt::format("{}: has no object '{}'", path, name)};
  Fields config(json["config"], path, "config ");
  config.read("batch_size", record.batch_size);
  config.read_if_any("num_workers", record.num_workers);
  config.read("seq_len", record.seq_len);
  config.read_if_any("precision", record.precision);
  config.read_if_any("fused", record.fused);
  if (config.failure()) return *config.failure();
  Fields metrics(json["metrics"], path, "metrics ");
  metrics.read("throughput_tok_s", record.throughput_tok_s);
  metrics.read("time_per_step_ms", record.time_per_step_ms);
  metrics.read("final_loss", record.final_loss);
  metrics.read_if_any("val_loss", record.val_loss);
  metrics.read_if_any("gpu_util_pct", record.gpu_util_pct);
  metrics.read_if_any("memory_mb", record.memory_mb);
  metrics.read_if_any("step_ms_p10", record.step_ms_p10);
  metrics.read_if_any("step_ms_p50", record.step_ms_p50);
  metrics.read_if_any("step_ms_p90", record.step_ms_p90);
  if (metrics.failure()) return *metrics.failure();
  return record;
}

}  // namespace fullbore

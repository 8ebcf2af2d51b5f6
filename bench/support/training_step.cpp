#include "bench/support/training_step.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <sstream>

#include "fullbore/app/measured_job.h"
#include "fullbore/ckpt/safetensors.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/passes/pass.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/plan/plan_work.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/step_runner.h"

namespace fullbore::bench {
namespace {

// What of a long text is shared: a draw from more would be no better.
constexpr int64_t kMostSharedTokens = int64_t{1} << 24;

// Of one step, those of all iterations.
int64_t launch_count(const Plan& plan) {
  int64_t count = 0;
  for (const LaunchEntry& launch : launch_list(plan))
    if (launch.launch->kind != PlannedLaunch::Kind::loop) count += launch.times;
  return count;
}

double clock_seconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Tensors that lie somewhere, as a safetensors file.
class SharedFile {
 public:
  void add(const std::string& name, const TensorType& type, const void* data) {
    const auto bytes = static_cast<size_t>(type.bytes());
    header_.tensors.push_back({name, type, data_.size(), data_.size() + bytes});
    data_.append(static_cast<const char*>(data), bytes);
  }
  void write(const std::string& path) const {
    const std::string header = encode_safetensors_header(header_).take_or_throw();
    std::string length(kSafetensorsLengthBytes, '\0');
    for (size_t i = 0; i < length.size(); ++i)
      length[i] = static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
    write_output_file(path, length + header + data_);
  }

 private:
  SafetensorsHeader header_;
  std::string data_;
};

void add_tokens(SharedFile& file, const Config& config) {
  const TextData text = open_text(config);
  const TokenRange range = split_text(config, text).training;
  std::vector<int32_t> tokens(static_cast<size_t>(std::min(range.size(), kMostSharedTokens)));
  const auto count = static_cast<int64_t>(tokens.size());
  text.tokens->copy(range.begin, count, tokens.data());
  file.add("tokens", {DType::i32, {count}}, tokens.data());
}

void add_batches(SharedFile& file, const TrainingJob& job, int64_t count) {
  const std::vector<BatchField>& fields = job.training->fields();
  std::vector<std::string> bytes(fields.size());
  Loader loader(job.training, job.options.loader);
  for (int64_t each = 0; each < count; ++each) {
    const std::span<const void* const> batch = loader.next();
    for (size_t i = 0; i < fields.size(); ++i)
      bytes[i].append(static_cast<const char*>(batch[i]),
                      static_cast<size_t>(fields[i].type.bytes()));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    TensorType type = fields[i].type;
    if (count > 1) type.shape = type.shape.inserted(0, count);
    file.add(fields[i].name, type, bytes[i].data());
  }
}

/// Before the first step, which changes the parameters.
void share(const std::string& path, const PeerJob& peer, const MeasuredJob& job,
           const StepRunner& runner) {
  SharedFile file;
  const State& state = runner.state();
  for (size_t i = 0; i < state.entries().size(); ++i)
    if (const StateEntry& entry = state.entries()[i];
        entry.role == Role::parameter || entry.role == Role::frozen)
      file.add(entry.name, entry.type, state.read<std::byte>(entry.name).data());
  add_batches(file, job.job, peer.shared_batches);
  if (is_text_model(job.config) && !job.config.data.path.empty()) add_tokens(file, job.config);
  file.write(path);
}

/// The process's largest resident set, without the arrays by which the machine was measured.
class PeakMemory {
 public:
  void before_measuring_the_machine() { before_ = peak_resident_bytes(); }
  void after_it() { forget_peak_resident_bytes(); }
  int64_t bytes() const { return std::max(before_, peak_resident_bytes()); }

 private:
  int64_t before_ = 0;
};

/// `counted`: what a step has of that by which rates are told.
Json run(StepRunner& runner, const PeakMemory& memory, int64_t count, int64_t counted) {
  const double start = clock_seconds(CLOCK_MONOTONIC);
  // Of all threads: what a busy machine disturbs less than the clock.
  const double processor_start = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  double losses = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    const StepRunner::Step step = runner.run();
    losses += step.loss;
    least = std::min(least, step.seconds());
  }
  const auto steps = static_cast<double>(count);
  const double seconds = (clock_seconds(CLOCK_MONOTONIC) - start) / steps;
  const double processor = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - processor_start;
  return {{"steps", count},
          {"step", runner.steps()},
          {"seconds_per_step", seconds},
          {"least_seconds_per_step", least},
          {"cpu_seconds_per_step", processor / steps},
          {"tokens_per_second", static_cast<double>(counted) / seconds},
          {"loss", losses / steps},
          {"peak_resident_bytes", memory.bytes()}};
}

Json schedule_json(const Config& config) {
  const Config::Optim& optim = config.optim;
  return {{"steps", config.train.steps}, {"warmup", optim.warmup_steps},
          {"rate", optim.learning_rate}, {"minimum_rate", optim.minimum_learning_rate},
          {"beta1", optim.beta1},        {"beta2", optim.beta2},
          {"epsilon", optim.epsilon},    {"decay", optim.weight_decay},
          {"clip", optim.clip_norm}};
}

/// What the other sides copy.
Json job_json(const PeerJob& peer, const MeasuredJob& job) {
  Json json = {{"batch", job.config.train.batch_size}, {"dropout", job.config.model.dropout}};
  if (!peer.counted.empty()) json["counted"] = peer.counted;
  json.update(peer.sizes(job.config, job.job));
  json.update(schedule_json(job.config));
  return json;
}

/// `sharing`: seconds of the start in which files were written for the other sides.
Json ready(const PeerJob& peer, const MeasuredJob& job, StepRunner& runner, PeakMemory& memory,
           double started, double sharing) {
  const double first_loss = runner.run().loss;
  const double first_step_done = clock_seconds(CLOCK_MONOTONIC) - sharing;
  const char* const spawned = std::getenv("BENCH_STARTED");
  const double since_spawn = spawned ? first_step_done - std::atof(spawned) : 0;
  // Kept from a run of `fullbore doctor`, or measured now, when nothing is timed.
  memory.before_measuring_the_machine();
  const Machine machine = known_machine(runner.device());
  memory.after_it();
  auto passes = Json::array();
  for (const Pass& pass : pipeline())
    if (!job.job.options.compile.passes.disabled.contains(std::string(pass.name)))
      passes.push_back(pass.name);
  const Plan& plan = runner.plan(0);
  // Of the first step: where loops end as the data say, what was made and not what there is room for.
  const PlanWork work = plan_work(plan, machine.peaks, runner.program(0).iterations_made());
  return {{"ready", true},
          {"side", "fullbore"},
          {"flags", passes},
          {"threads", runner.device().facts().workers},
          {"precision", job.config.engine.precision},
          {"parameters", parameter_count(runner.state())},
          {"batches", job.batches},
          {"decisions", job.decisions},
          {"first_loss", first_loss},
          {"first_step_seconds", first_step_done - started},
          {"start_seconds", spawned ? Json(since_spawn) : Json()},
          {"planned_peak_bytes", plan.peak_bytes()},
          {"launches", launch_count(plan)},
          {"step_flops", work.flops},
          {"roofline_seconds", work.roofline_seconds},
          {"machine",
           {{"processor", machine.processor},
            {"fp32_flops", machine.peaks.fp32_flops},
            {"bf16_flops", machine.peaks.bf16_flops},
            {"bytes_per_second", machine.peaks.bytes_per_second}}},
          {"job", job_json(peer, job)}};
}

void serve(const PeerJob& peer, const std::string& shared, const Config& config) {
  if (config.model.name != peer.model)
    throw UsageError(
        fmt::format("this compares model.name={}, not {}", peer.model, config.model.name));
  peer.check(config);
  const double started = clock_seconds(CLOCK_MONOTONIC);
  Console console;
  MeasuredJob job = measured_job(config, 0, console);
  // On a card the processor is free to prepare batches, as it does in training.
  if (!config.engine.device.starts_with("cuda"))
    job.job.options.loader = {.workers = 0, .prefetch = 1};
  StepRunner runner(job.job);
  const double built = clock_seconds(CLOCK_MONOTONIC);
  if (!shared.empty()) share(shared, peer, job, runner);
  const double sharing = clock_seconds(CLOCK_MONOTONIC) - built;
  const int64_t counted =
      peer.counted.empty() ? runner.tokens_per_step() : job.config.train.batch_size;
  PeakMemory memory;
  std::cout << ready(peer, job, runner, memory, started, sharing).dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    int64_t count = 0;
    if (!(words >> count) || count < 1)
      throw UsageError("expected a number of steps, found '" + line + "'");
    std::cout << run(runner, memory, count, counted).dump() << std::endl;
  }
}

}  // namespace

void check_text_job(const Config& config) {
  const Config::Optim& optim = config.optim;
  if (text_keys(config).data.batching != "windows" || optim.name != "adamw" ||
      optim.schedule != "cosine" || !optim.groups.empty() || optim.ema_decay != 0 ||
      optim.clip_value != 0 || optim.noise_scale || config.model.dropout != 0)
    throw UsageError(
        "the peers know language models without dropout, on windows of a text, trained by adamw "
        "with a cosine schedule, without parameter groups, averages and clip_value");
}

Json text_sizes(const Config& config) {
  const TextKeys::Model& model = text_keys(config).model;
  return {{"context", model.context},
          {"layers", model.layers},
          {"heads", model.heads},
          {"width", model.width}};
}

int run_training_step(int argc, char** argv, const PeerJob& peer) {
  std::vector<std::string> words(argv + 1, argv + argc);
  std::string shared;
  if (words.size() >= 2 && words[0] == "--share") {
    shared = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.empty()) {
    std::cerr << "usage: " << argv[0] << " [--share FILE] CONFIG [key=value ...]\n";
    return 2;
  }
  try {
    const std::vector<std::string> overrides(words.begin() + 1, words.end());
    serve(peer, shared, load_config(words[0], overrides));
  } catch (const Error& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return static_cast<int>(error.code());
  }
  return 0;
}

}  // namespace fullbore::bench

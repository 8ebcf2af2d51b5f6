#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "fullbore/app/commands.h"
#include "fullbore/app/doctor_card.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/app/sensors_json.h"
#include "fullbore/app/version.h"
#include "fullbore/base/bf16_note.h"
#include "fullbore/base/cache_directory.h"
#include "fullbore/base/files.h"
#include "fullbore/base/processor.h"
#include "fullbore/base/processor_facts.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/sensor.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"

namespace fullbore {
namespace {

/// "x86-64-v2, avx2, avx512 (in use)", then what the machine lacks.
std::string levels_text() {
  std::string has, lacks;
  for (const ProcessorLevel level : processor_levels()) {
    std::string name(processor_level_name(level));
    if (level == this_processor().level) name += " (in use)";
    std::string& list = level <= machine_processor().level ? has : lacks;
    list += (list.empty() ? "" : ", ") + name;
  }
  return lacks.empty() ? has : fmt::format("{}; not here: {}", has, lacks);
}

/// All that the doctor looks at. A finding is something missing, with its consequence or cure.
struct Diagnosis {
  Machine machine;
  std::vector<std::string> features;
  int online_processors = 0;
  int64_t memory_bytes = 0;
  std::vector<DeviceKind> devices;
  CardDiagnosis card;
  std::vector<Library> libraries;
  std::string cache_folder;
  std::string cache_problem;  ///< why it is a temporary one; "" if it is not
  bool cache_writable = false;
  int64_t cache_free_bytes = 0;
  int64_t run_free_bytes = 0;  ///< where runs are written: the current folder
  std::string kernel_test;     ///< "" if the device computes what it should
  std::vector<SensorReading> sensors;
  std::vector<std::string> findings;
};

/// Two samples a tenth of a second apart, for rates are of the time between.
std::vector<SensorReading> read_sensors() {
  Sensors sensors;
  sensors.read(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return sensors.read(0.1);
}

/// Compiles and runs y = tanh(x w) once: a kernel of the JIT and one of the matrix library.
std::string test_kernels(std::shared_ptr<Device> device) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kWidth = 5;
  try {
    GraphBuilder builder("doctor");
    const Tensor x = builder.input("x", Role::batch, {DType::f32, {kRows, kWidth}});
    const Tensor w = builder.input("w", Role::batch, {DType::f32, {kWidth, kWidth}});
    builder.output("y", tanh(matmul(x, w)));
    State state({}, std::move(device));
    Program program = Program::compile(builder.take(), state);
    alignas(64) float x_data[kRows * kWidth];
    alignas(64) float w_data[kWidth * kWidth];
    for (int i = 0; i < kRows * kWidth; ++i) x_data[i] = 0.1F * static_cast<float>(i - 7);
    for (int i = 0; i < kWidth * kWidth; ++i) w_data[i] = 0.05F * static_cast<float>(11 - i);
    const void* const batch[] = {x_data, w_data};
    program.run(batch);
    const auto y = program.read_result<float>(program.output("y"));
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = 0; column < kWidth; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < kWidth; ++k)
          sum += double{x_data[row * kWidth + k]} * double{w_data[k * kWidth + column]};
        if (!(std::abs(double{y[static_cast<size_t>(row * kWidth + column)]} - std::tanh(sum)) <
              1e-5))
          return fmt::format("computed {} where {} is right",
                             y[static_cast<size_t>(row * kWidth + column)], std::tanh(sum));
      }
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

bool writable(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string probe = fmt::format("{}/doctor-{}", folder, getpid());
  const bool ok = write_file_atomically(probe, "probe\n").ok();
  std::filesystem::remove(probe, error);
  return ok;
}

void find_what_is_missing(Diagnosis& d) {
  constexpr int64_t kLowDisk = int64_t{1} << 30;
  if (!d.kernel_test.empty())
    d.findings.push_back("the cpu device does not work here: " + d.kernel_test);
  if (this_processor().level < ProcessorLevel::avx2)
    d.findings.emplace_back("no AVX2 with FMA: expect a small part of the usual speed");
  if (this_processor().lowered)
    d.findings.push_back(fmt::format("FULLBORE_PROCESSOR keeps to {}: this machine has {}",
                                     processor_level_name(this_processor().level),
                                     processor_level_name(machine_processor().level)));
  if (const std::string_view note = bf16_note(this_processor()); !note.empty())
    d.findings.emplace_back(note);
  if (d.machine.busy)
    d.findings.emplace_back(
        "other processes were using this machine: the memory peak is too low; measure again when "
        "it is idle");
  if (d.machine.workers < d.online_processors)
    d.findings.push_back(fmt::format(
        "{} of {} processors usable: the affinity mask or the control group's quota limits this "
        "process",
        d.machine.workers, d.online_processors));
  if (!d.cache_problem.empty())
    d.findings.push_back(
        fmt::format("no lasting cache: {}: kernels are compiled anew in every run (FULLBORE_CACHE "
                    "names a folder "
                    "of your own)",
                    d.cache_problem));
  else if (!d.cache_writable)
    d.findings.push_back(fmt::format(
        "the cache folder {} cannot be written: kernels are compiled anew in every run (set "
        "FULLBORE_CACHE to a folder that can)",
        d.cache_folder));
  if (d.run_free_bytes >= 0 && d.run_free_bytes < kLowDisk)
    d.findings.push_back(fmt::format("only {} of disk left in the current folder",
                                     bytes_text(static_cast<double>(d.run_free_bytes))));
}

Diagnosis diagnose() {
  const std::shared_ptr<Device> device = open_device("cpu");
  Diagnosis d;
  d.machine = refresh_machine(*device);
  d.features = processor_features();
  d.online_processors = online_processors();
  d.memory_bytes = memory_limit_bytes();
  d.devices = device_kinds();
  d.card = diagnose_card();
  d.libraries = device_libraries();
  d.cache_problem = cache_directory_problem();
  d.cache_folder = cache_directory();
  d.cache_writable = writable(d.cache_folder);
  d.cache_free_bytes = free_disk_bytes(d.cache_folder);
  d.run_free_bytes = free_disk_bytes(".");
  d.kernel_test = test_kernels(device);
  d.sensors = read_sensors();
  find_what_is_missing(d);
  return d;
}

void print_row(const char* name, const std::string& text) {
  print_output("  {:<12} {}\n", name, text);
}

std::string free_text(int64_t bytes) {
  return bytes < 0 ? "unknown" : bytes_text(static_cast<double>(bytes)) + " free";
}

/// Those that can be read first, several a line; then what is missing, with the reason.
void print_sensors(const std::vector<SensorReading>& sensors) {
  constexpr size_t kColumns = 3;
  std::vector<std::string> cells;
  for (const SensorReading& each : sensors)
    if (!std::isnan(each.value))
      cells.push_back(fmt::format("{} {:.5g}{}{}", each.name, each.value,
                                  each.unit.empty() ? "" : " ", each.unit));
  for (size_t i = 0; i < cells.size(); i += kColumns) {
    std::string line;
    for (size_t j = i; j < std::min(cells.size(), i + kColumns); ++j)
      line += fmt::format("  {:<30}", cells[j]);
    print_output("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
  // Sensors of one kind lack the same.
  std::vector<std::pair<std::string, std::string>> missing;
  for (const SensorReading& each : sensors) {
    if (each.missing.empty()) continue;
    if (!missing.empty() && missing.back().second == each.missing)
      missing.back().first += ", " + each.name;
    else
      missing.emplace_back(each.name, each.missing);
  }
  for (const auto& [names, why] : missing) print_output("  no {}: {}\n", names, why);
}

void print_text(const Diagnosis& d) {
  const MachinePeaks& peaks = d.machine.peaks;
  print_output("Machine\n");
  print_row("processor", d.machine.processor);
  print_row("instructions", fmt::format("{}", fmt::join(d.features, " ")));
  print_row("levels", levels_text());
  print_row("processors", fmt::format("{} usable of {}", d.machine.workers, d.online_processors));
  print_row("memory", bytes_text(static_cast<double>(d.memory_bytes)));
  print_output("Measured peaks, {} workers\n", d.machine.workers);
  print_row("fp32",
            fmt::format("{:.1f} GFLOP/s  ({})", peaks.fp32_flops / 1e9, d.machine.fp32_method));
  print_row("bf16",
            fmt::format("{:.1f} GFLOP/s  ({})", peaks.bf16_flops / 1e9, d.machine.bf16_method));
  print_row("memory",
            fmt::format("{:.1f} GB/s  (triad, three streams)", peaks.bytes_per_second / 1e9));
  print_output("Devices\n");
  for (const DeviceKind& kind : d.devices)
    print_row(std::string(kind.name).c_str(), std::string(kind.summary));
  const bool has_card = d.card.free_bytes >= 0;
  print_row("card", has_card ? fmt::format("{}, {}", d.card.hardware, free_text(d.card.free_bytes))
                             : d.card.hardware);
  print_card(d.card);
  print_output("Libraries\n");
  print_row("fullbore", version());
  for (const Library& library : d.libraries)
    print_row(library.name.c_str(),
              library.problem.empty()
                  ? fmt::format("{}  {}", library.version, library.purpose)
                  : fmt::format("none for {}: {}", library.purpose, library.problem));
  print_row("kernels", d.kernel_test.empty() ? "compiled, run, and right" : d.kernel_test);
  print_output("Disk\n");
  print_row("cache", fmt::format("{}  {}, {}", d.cache_folder,
                                 d.cache_writable ? "writable" : "not writable",
                                 free_text(d.cache_free_bytes)));
  print_row("runs", fmt::format("current folder  {}", free_text(d.run_free_bytes)));
  print_output("Sensors\n");
  print_sensors(d.sensors);
  print_output("Findings\n");
  if (d.findings.empty()) print_output("  nothing is missing\n");
  for (const std::string& finding : d.findings) print_output("  - {}\n", finding);
}

void print_json(const Diagnosis& d) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::object();
  for (const DeviceKind& kind : d.devices) devices[std::string(kind.name)] = kind.summary;
  nlohmann::ordered_json libraries = nlohmann::ordered_json::object();
  nlohmann::ordered_json unusable = nlohmann::ordered_json::object();
  for (const Library& library : d.libraries)
    (library.problem.empty() ? libraries : unusable)[library.name] =
        library.problem.empty() ? library.version : library.problem;
  nlohmann::ordered_json json = {
      {"processor", d.machine.processor},
      {"instructions", d.features},
      {"level", processor_level_name(this_processor().level)},
      {"machine_level", processor_level_name(machine_processor().level)},
      {"processors", d.online_processors},
      {"workers", d.machine.workers},
      {"memory_bytes", d.memory_bytes},
      {"fp32_flops", d.machine.peaks.fp32_flops},
      {"fp32_method", d.machine.fp32_method},
      {"bf16_flops", d.machine.peaks.bf16_flops},
      {"bf16_method", d.machine.bf16_method},
      {"native_bf16", d.machine.native_bf16},
      {"bytes_per_second", d.machine.peaks.bytes_per_second},
      {"version", version()},
      {"devices", devices},
      {"libraries", libraries},
      {"unusable_libraries", unusable},
      {"kernels_work", d.kernel_test.empty()},
      {"cache", d.cache_folder},
      {"cache_writable", d.cache_writable},
      {"cache_free_bytes", d.cache_free_bytes},
      {"run_free_bytes", d.run_free_bytes},
      {"sensors", sensors_json(d.sensors)},
      {"findings", d.findings},
  };
  add_card(json, d.card);
  write_output(json_text(json));
}

}  // namespace

void add_doctor_command(Command root) {
  Command command = root.add_subcommand("doctor", "Measure this machine and say what is missing");
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  command.footer(
      "\nThe measured peaks are kept in the cache folder; `train` and `plan` compare with them.\n"
      "FULLBORE_PROCESSOR=LEVEL (or engine.processor in a configuration) keeps to the instructions "
      "of a level:\n"
      "x86-64-v2, avx2, avx512, avx512-bf16 or amx (on ARM: arm64); it only lowers.\n"
      "Sensors are those that `train` samples into sensors.csv. Where one is missing, the reason "
      "says which "
      "permission\n"
      "or hardware it takes. FULLBORE_NVML and FULLBORE_CUDA_DRIVER name other "
      "libraries of NVIDIA's driver than libnvidia-ml.so.1 and libcuda.so.1, "
      "FULLBORE_SENSOR_ROOT a "
      "folder\n"
      "that stands for / when /proc and /sys are read. FULLBORE_CUBLASLT names another cuBLASLt "
      "than "
      "libcublasLt.so.13 or\n"
      "libcublasLt.so.12, which engine.cublaslt=true uses and nothing needs.\n"
      "Of NVIDIA's cards it says how they are set, and the commands that would change that; it "
      "changes nothing.\n"
      "Exit code 1 if the cpu device does not compute what it should.\n"
      "\nExample:\n  fullbore doctor");
  command.runs([json] {
    const Diagnosis diagnosis = diagnose();
    *json ? print_json(diagnosis) : print_text(diagnosis);
    return diagnosis.kernel_test.empty() ? ExitCode::kOk : ExitCode::kInternal;
  });
}

}  // namespace fullbore

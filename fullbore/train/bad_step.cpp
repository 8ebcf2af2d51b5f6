#include "fullbore/train/bad_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/program_name.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/train/retired_names.h"
#include "fullbore/train/run_saver.h"

namespace fullbore {
namespace {

constexpr const char* kGraph = "graph.txt";
constexpr const char* kReport = "report.json";
constexpr const char* kBatch = "batch";

nlohmann::ordered_json report_of(const BadStep& step) {
  nlohmann::ordered_json results = nlohmann::ordered_json::object();
  for (const auto& [name, value] : step.results) {
    if (std::isfinite(value))
      results[name] = value;
    else
      results[name] = fmt::format("{}", value);
  }
  return {{"step", step.step},
          {"device", step.device},
          {"disabled_passes", step.compile.passes.disabled},
          {"precision", dtype_name(step.compile.precision)},
          {"tf32", step.compile.tf32},
          {"fp32_modules", step.compile.fp32_scopes},
          {"row_invariant", step.compile.row_invariant},
          {"cublaslt", step.compile.cublaslt},
          {"compile", compile_effort_name(step.compile.compile)},
          {"first_non_finite", step.finding},
          {"results", results}};
}

/// A setting of the engine, under its name of today or the one that an earlier version gave it.
const nlohmann::json& setting_of(const nlohmann::json& report, const std::string& name) {
  for (const auto& [written, value] : report.items())
    if (renamed_key("engine." + written) == "engine." + name) return value;
  return report.at(name);
}

Status parse_report(const std::string& text, const std::string& path, BadStep& step) {
  const Result<nlohmann::json> parsed = parse_json(text);
  if (!parsed.ok()) return Failure{fmt::format("{}/{}: {}", path, kReport, parsed.error())};
  const nlohmann::json& json = parsed.value();
  try {
    step.step = json.at("step").get<int64_t>();
    step.device = setting_of(json, "device").get<std::string>();
    for (const auto& name : json.at("disabled_passes").get<std::vector<std::string>>()) {
      const std::string_view now = renamed_value("engine.disabled_passes", name);
      step.compile.passes.disabled.insert(now.empty() ? name : std::string(now));
    }
    step.compile.fp32_scopes = json.at("fp32_modules").get<std::vector<std::string>>();
    const auto precision = parse_dtype(json.at("precision").get<std::string>());
    if (!precision) return Failure{fmt::format("{}/{}: precision is no dtype", path, kReport)};
    step.compile.precision = *precision;
    // Earlier versions had none of these.
    step.compile.tf32 = json.value("tf32", false);
    step.compile.row_invariant = json.value("row_invariant", false);
    step.compile.cublaslt = json.value("cublaslt", false);
    const auto effort = parse_compile_effort(json.value("compile", "full"));
    if (!effort)
      return Failure{fmt::format("{}/{}: compile is none of off, fast, full", path, kReport)};
    step.compile.compile = *effort;
    step.finding = json.at("first_non_finite").get<std::string>();
    for (const auto& [name, value] : json.at("results").items())
      step.results[name] = value.is_number()
                               ? value.get<double>()
                               : std::strtod(value.get<std::string>().c_str(), nullptr);
  } catch (const nlohmann::json::exception& error) {
    return Failure{fmt::format("{}/{}: {}", path, kReport, error.what())};
  }
  return success();
}

/// The tensor of this name in any of the groups.
Result<Literal> read_tensor(std::span<const Checkpoint> files, const std::string& path,
                            const std::string& name, const TensorType& type) {
  for (const Checkpoint& file : files) {
    const StoredTensor* const stored = file.find(name);
    if (stored == nullptr) continue;
    if (stored->type != type)
      return Failure{fmt::format("{}: '{}' is {}, the graph wants {}", file.path(), name,
                                 stored->type.text(), type.text())};
    std::vector<char> bytes(static_cast<size_t>(stored->bytes()));
    if (Status status = file.read(*stored, bytes.data()); !status.ok())
      return Failure{status.error()};
    return Literal::from_bytes(type, bytes.data());
  }
  return Failure{fmt::format("{}: no '{}' {}, which the graph reads", path, name, type.text())};
}

}  // namespace

std::string save_bad_step(const std::string& folder, const BadStep& step, const State& state,
                          std::span<const void* const> batch) {
  CheckpointContents contents;
  contents.groups = tensor_groups(state, Compression::none);
  // All of the State is as it was before the step but for its counter.
  const int64_t counter = step.step - 1;
  for (TensorGroup& group : contents.groups)
    for (NamedTensor& tensor : group.tensors)
      if (tensor.name == "step" && tensor.type == TensorType{DType::i64, {}}) {
        tensor.data = &counter;
        tensor.pieces = nullptr;
      }
  TensorGroup fields{kBatch, {}};
  for (const Graph::Input& input : step.graph.inputs())
    if (!is_state(input.role))
      fields.tensors.push_back(
          {input.name, step.graph.type(input.value), batch[fields.tensors.size()]});
  contents.groups.push_back(std::move(fields));
  contents.texts = {{kGraph, print(step.graph)}, {kReport, report_of(step).dump(2) + '\n'}};

  make_own_folder(folder).take_or_throw();
  std::string path = fmt::format("{}/step-{:08}", folder, step.step);
  FileStatus status;
  // Made already before a run was resumed: the same step has the same bits.
  if (system_files().status(path, status) == 0) return path;
  const std::string temporary = fmt::format("{}/.step-{:08}.tmp", folder, step.step);
  if (system_files().status(temporary, status) == 0)
    remove_folder_with_contents(temporary).take_or_throw();
  write_checkpoint_folder(temporary, contents).take_or_throw();
  if (system_files().rename(temporary, path) != 0 || system_files().sync_folder(folder) != 0)
    throw DataError(fmt::format("cannot write {}: {}", path, system_reason()));
  return path;
}

std::string keep_bad_step(const std::string& folder, int64_t number, const CompiledStep& step,
                          const StepResults& results, State& state,
                          std::span<const void* const> batch, const CompileOptions& options) {
  BadStep bad{number, step.graph(), state.device().facts().name, options, {}, ""};
  for (const auto& [name, value] : results) bad.results[name] = value;
  // The step's counter alone went on; random draws depend on it.
  const int64_t counter = state.read<int64_t>("step")[0];
  state.write<int64_t>("step", {counter - 1});
  bad.finding = first_non_finite(bad.graph, state, batch, options);
  state.write<int64_t>("step", {counter});
  const std::string path = save_bad_step(folder, bad, state, batch);
  return fmt::format("{}{}See `{} replay-step {}`.", bad.finding, bad.finding.empty() ? "" : ". ",
                     program_name(), path);
}

std::string non_finite_parameter(const State& state) {
  const auto all_finite = [](std::span<const std::byte> piece, DType dtype) {
    if (dtype == DType::bf16) {
      constexpr uint16_t kExponent = 0x7F80;
      const auto* const values = reinterpret_cast<const uint16_t*>(piece.data());
      return std::all_of(values, values + piece.size() / sizeof(uint16_t),
                         [](uint16_t x) { return (x & kExponent) != kExponent; });
    }
    const auto* const values = reinterpret_cast<const float*>(piece.data());
    return std::all_of(values, values + piece.size() / sizeof(float),
                       [](float x) { return std::isfinite(x); });
  };
  // At one go, with the zeros between: threads meet twice for every range, and small parameters are many.
  std::atomic<bool> finite = true;
  for (const DType dtype : {DType::f32, DType::bf16})
    state.consume(Role::parameter, dtype, Pieces::any_order,
                  [&](int64_t, std::span<const std::byte> piece) {
                    if (!all_finite(piece, dtype)) finite = false;
                  });
  if (finite) return "";
  for (size_t entry = 0; entry < state.entries().size(); ++entry) {
    const StateEntry& each = state.entries()[entry];
    const DType dtype = each.type.dtype;
    if (each.role != Role::parameter || (dtype != DType::f32 && dtype != DType::bf16)) continue;
    bool is_sound = true;
    state.consume(static_cast<int>(entry), Pieces::in_order,
                  [&](int64_t, std::span<const std::byte> piece) {
                    is_sound = is_sound && all_finite(piece, dtype);
                  });
    if (!is_sound) return fmt::format("parameter '{}' {}", each.name, each.type.text());
  }
  return "";
}

LoadedStep load_bad_step(const std::string& path) {
  const CheckpointFolder folder = open_checkpoint_folder(path).take_or_throw();
  folder.verify().take_or_throw();
  LoadedStep loaded;
  loaded.step.graph =
      parse_graph(renamed_graph(folder.text(kGraph).take_or_throw())).take_or_throw();
  // A stranger's may be any text: what is run is a graph by all rules.
  if (const std::string fault = verify(loaded.step.graph); !fault.empty())
    throw DataError(fmt::format("{}/{}: {}", path, kGraph, fault));
  // Passes derive weights, and a step is kept as it was traced.
  for (const Graph::Input& input : loaded.step.graph.inputs())
    if (input.role == Role::derived)
      throw DataError(fmt::format("{}/{}: input '{}' is derived, which no traced step has", path,
                                  kGraph, input.name));
  parse_report(folder.text(kReport).take_or_throw(), path, loaded.step).take_or_throw();
  std::vector<Checkpoint> state;
  std::vector<Checkpoint> batch;
  for (const std::string& name : folder.groups())
    (name == kBatch ? batch : state).push_back(folder.group(name).take_or_throw());
  const Graph& graph = loaded.step.graph;
  for (const Graph::Input& input : graph.inputs())
    loaded.inputs.push_back(
        read_tensor(is_state(input.role) ? state : batch, path, input.name, graph.type(input.value))
            .take_or_throw());
  return loaded;
}

}  // namespace fullbore

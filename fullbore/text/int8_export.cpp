#include "fullbore/text/int8_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "fullbore/app/output.h"
#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/console.h"
#include "fullbore/passes/gemm/quantize_linears.h"
#include "fullbore/runtime/quantized_state.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_progress.h"
#include "fullbore/train/run_checkpoints.h"
#include "fullbore/train/run_position.h"
#include "fullbore/train/tensor_groups.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern_distance(pattern, name) == 0;
  });
}

/// f32 matrices among the parameters.
std::vector<std::string> matrices(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::Input& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    const bool parameter = input.role == Role::parameter || input.role == Role::frozen;
    if (parameter && type.dtype == DType::f32 && type.shape.rank() == 2)
      names.push_back(input.name);
  }
  return names;
}

// A pattern with a slip in it would quantise what it was meant to keep.
void check_patterns(const std::vector<std::string>& patterns,
                    const std::vector<std::string>& names) {
  for (const std::string& pattern : patterns) {
    const auto nearest =
        std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
          return pattern_distance(pattern, a) < pattern_distance(pattern, b);
        });
    if (nearest != names.end() && pattern_distance(pattern, *nearest) == 0) continue;
    throw UsageError(
        fmt::format("export: --keep: '{}' matches no matrix.{}", pattern,
                    nearest == names.end() ? "" : fmt::format(" The nearest is '{}'.", *nearest)));
  }
}

std::set<std::string> chosen_parameters(const Config& config, const Graph& graph,
                                        const Int8ExportOptions& options) {
  const std::vector<std::string> names = matrices(graph);
  check_patterns(options.keep, names);
  const auto& keeps_f32 = text_model(config).keeps_f32;
  const std::set<std::string> kept = keeps_f32 ? keeps_f32(config) : std::set<std::string>();
  std::set<std::string> chosen;
  for (const std::string& name : names) {
    const Shape& shape =
        graph.type(graph.inputs()[static_cast<size_t>(graph.find_input(name))].value).shape;
    const bool large = std::min(shape[0], shape[1]) >= options.smallest;
    if (large && !matches_any(name, options.keep) && !kept.contains(name)) chosen.insert(name);
  }
  return chosen;
}

/// The same model with its matmuls in 8 bits.
TrainedModel quantized(const TrainedModel& model, const Int8ExportOptions& options) {
  const int64_t tokens = model.tokenizer->vocabulary_size();
  const Graph graph =
      trace_evaluation(model_loss(model.config, tokens), batch_fields(model.config)).graph;
  const QuantizedLinears linears =
      quantize_linears(graph, chosen_parameters(model.config, graph, options));
  if (linears.replaced.empty())
    throw UsageError(fmt::format(
        "export: no matmul of {} reads a matrix of {} by {} or more that --keep leaves to --int8",
        model.path, options.smallest, options.smallest));
  std::vector<StateEntry> entries = state_entries(linears.graph);
  std::erase_if(entries, [](const StateEntry& entry) {
    return entry.role != Role::parameter && entry.role != Role::frozen;
  });
  return {model.path, model.step, model.config, model.tokenizer,
          quantized_state(model.state, std::move(entries))};
}

/// Loss on held-out text, and on how many predictions.
Evaluation evaluate(TrainedModel& model, const ValidationSet& set, const char* what,
                    Console& console) {
  Evaluator evaluator(model_loss(model.config, model.tokenizer->vocabulary_size()), set,
                      model.state, trained_options(model.config));
  Progress progress;
  return *evaluator.evaluate([&](uint64_t done) {
    progress.phase = fmt::format("evaluating in {} {}/{}", what, done, evaluator.batches());
    console.live(progress);
    return true;
  });
}

ValidationSet held_out(const TrainedModel& model, const std::string& data, int64_t batches,
                       Console& console) {
  const std::string path = data.empty() ? model.config.data.path : data;
  const TextData text = open_text(model.config, path, model.tokenizer, text_progress(console));
  return evaluation_set(model.config, text, !data.empty(), batches);
}

int64_t weight_bytes(const State& state) {
  int64_t bytes = 0;
  for (const StateEntry& entry : state.entries())
    if (entry.role == Role::parameter || entry.role == Role::frozen) bytes += entry.type.bytes();
  return bytes;
}

/// The folder appears whole or not at all.
void write_folder(const std::string& path, const TrainedModel& model) {
  const OpenedCheckpoint source = open_checkpoint(model.path);
  Config config = model.config;
  config.train.evaluate = "raw";  // what was evaluated is what is written
  RunRecord record = source.record;
  record.config = config_json(config);
  CheckpointContents contents{tensor_groups(model.state, Compression::none), to_texts(record)};
  std::erase_if(contents.groups, [](const TensorGroup& group) { return group.tensors.empty(); });
  const fs::path target = fs::path(path).lexically_normal();
  const fs::path name = target.has_filename() ? target.filename() : target.parent_path().filename();
  const fs::path folder =
      target.has_filename() ? target.parent_path() : target.parent_path().parent_path();
  const std::string parent = folder.empty() ? "." : folder.string();
  make_folders(parent).take_or_throw();
  const std::string temporary = fmt::format("{}/.{}.tmp", parent, name.string());
  (void)remove_folder_with_contents(temporary).ok();  // of an export that was killed
  const Status written = write_checkpoint_folder(temporary, contents);
  if (written.ok() && system_files().rename(temporary, (fs::path(parent) / name).string()) == 0 &&
      system_files().sync_folder(parent) == 0)
    return;
  const std::string reason =
      written.ok() ? fmt::format("cannot write {}: {}", path, system_reason()) : written.error();
  (void)remove_folder_with_contents(temporary).ok();
  throw DataError(reason);
}

}  // namespace

void export_int8(const Int8ExportOptions& options) {
  std::error_code error;
  if (fs::exists(options.output, error))
    throw DataError(fmt::format("{} exists already; name another folder", options.output));
  TrainedModel model = load_model(options.model, {.frozen_from = options.frozen_from});
  if (!quantized_parameters(model.state).empty())
    throw UsageError(fmt::format("export: {} is in 8 bits already", model.path));
  TrainedModel small = quantized(model, options);
  Console console;
  const ValidationSet set = held_out(model, options.data, options.batches, console);
  const Evaluation before = evaluate(model, set, "fp32", console);
  const Evaluation after = evaluate(small, set, "int8", console);
  console.clear();
  const double cost = after.loss - before.loss;
  const std::string losses =
      fmt::format("loss {:.6f} in fp32, {:.6f} in int8: {:+.6f} nats on {} predictions",
                  before.loss, after.loss, cost, static_cast<int64_t>(before.predictions));
  if (!(cost <= options.gate))
    throw NumericalError(
        fmt::format("export: {}; the gate is {}. Nothing was written.", losses, options.gate));
  write_folder(options.output, small);
  print_output("{}: step {} of {}\n{}; the gate is {}\n{} matrices in 8 bits: weights {} -> {}\n",
               options.output, small.step, model.path, losses, options.gate,
               quantized_parameters(small.state).size(),
               bytes_text(static_cast<double>(weight_bytes(model.state))),
               bytes_text(static_cast<double>(weight_bytes(small.state))));
}

}  // namespace fullbore

#include "workloads/latentwire/receiver_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/threads.h"
#include "fullbore/text/gguf_model.h"
#include "fullbore/train/weight_source.h"
#include "workloads/latentwire/mapped_folder.h"

namespace fullbore::latentwire {
namespace {

constexpr const char* kTable = ".token_embedding.weight";

// The readers of such folders and files know names without a scope: State of its own, copied.
void fill_from_huggingface(const Receiver& receiver, State& state) {
  const std::string prefix = receiver.scope() + ".";
  std::vector<StateEntry> entries;
  for (StateEntry entry : state.entries())
    if (entry.name.starts_with(prefix) && !entry.name.starts_with(prefix + "statistics.")) {
      entry.name = entry.name.substr(prefix.size());
      entries.push_back(std::move(entry));
    }
  State own(entries, state.shared_device());
  if (is_gguf(receiver.folder))
    GgufModel::open(receiver.folder).fill(receiver.decoder, own);
  else
    HuggingFaceModel::open(receiver.folder).fill(receiver.decoder, own);
  for (const StateEntry& entry : entries)
    state.write(prefix + entry.name, own.read<float>(entry.name));
}

std::vector<float> table_of(const Receiver& receiver, const State& state, ThreadPool& pool) {
  const int entry = state.find(receiver.scope() + kTable);
  const TensorType& type = state.entries()[static_cast<size_t>(entry)].type;
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  state.read(entry, bytes);
  std::vector<float> values(static_cast<size_t>(type.elements()));
  pool.parallel_for(type.elements(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      values[static_cast<size_t>(i)] =
          static_cast<float>(load_element(bytes.data(), type.dtype, i));
  });
  return values;
}

void fill_statistics(const Receiver& receiver, State& state) {
  const std::string prefix = receiver.scope() + ".statistics.";
  if (state.find(prefix + "rms") < 0) return;
  ThreadPool pool(available_processors());  // a table of half a billion numbers is not rare
  const std::vector<float> table = table_of(receiver, state, pool);
  const auto width = static_cast<size_t>(receiver.decoder.width), rows = table.size() / width;
  std::vector<double> sums(width), squares(width);
  // Each column in the order of its rows, whoever adds it up.
  pool.parallel_for(receiver.decoder.width, [&](int64_t begin, int64_t end) {
    for (size_t row = 0; row < rows; ++row)
      for (auto column = static_cast<size_t>(begin); column < static_cast<size_t>(end); ++column) {
        const double value = table[row * width + column];
        sums[column] += value;
        squares[column] += value * value;
      }
  });
  double all = 0;
  for (const double value : table) all += value * value;
  std::vector<float> mean, deviation;
  for (size_t i = 0; i < width; ++i) {
    const double centre = sums[i] / static_cast<double>(rows);
    const double square = squares[i] / static_cast<double>(rows) - centre * centre;
    mean.push_back(static_cast<float>(centre));
    deviation.push_back(static_cast<float>(std::sqrt(std::max(0.0, square))));
  }
  const double rms = std::sqrt(all / static_cast<double>(table.size()));
  state.write(prefix + "rms", std::vector<float>{static_cast<float>(rms)});
  if (state.find(prefix + "mean") < 0) return;
  state.write(prefix + "mean", mean);
  state.write(prefix + "deviation", deviation);
}

}  // namespace

FrozenScope frozen_receiver(Trace& trace, const Receiver& receiver) {
  return {trace, {"*"}, [dtype = receiver.storage](const std::string&) { return dtype; }};
}

std::optional<DType> storage_in_place(const HuggingFaceModel& model) {
  return dtype_in_place(model.tensors(), model.names(model.config().decoder));
}

void name_folders(std::vector<Receiver>& receivers, std::shared_ptr<const TextEncoder>& encoder,
                  std::span<const std::string> named) {
  std::vector<std::string> names;
  for (const Receiver& each : receivers)
    if (each.kind == kHuggingFace) names.push_back(each.name);
  for (const std::string& each : named) {
    const size_t equals = each.find('=');
    const bool only = equals == std::string::npos && names.size() == 1 && !encoder;
    const std::string name = only ? names[0] : each.substr(0, equals);
    const std::string folder = only ? each : each.substr(equals + 1);
    const auto found = std::ranges::find(receivers, name, &Receiver::name);
    if (found == receivers.end() && encoder && name == TextEncoder::kScope) {
      TextEncoder there = *encoder;
      there.folder = folder;
      encoder = std::make_shared<const TextEncoder>(std::move(there));
      continue;
    }
    if (found == receivers.end() || found->kind != kHuggingFace)
      throw UsageError(fmt::format(
          "--frozen-from {}: NAME=FOLDER was expected, of {}", each,
          names.empty() && !encoder
              ? "no receiver: this checkpoint holds them all"
              : fmt::format("{}{}", fmt::join(names, ", "), encoder ? " or text_encoder" : "")));
    found->folder = folder;
  }
}

std::shared_ptr<const FrozenWeights> weights_in_place(const std::vector<Receiver>& receivers,
                                                      const TextEncoder* encoder) {
  std::shared_ptr<FrozenWeights> weights;
  for (const Receiver& receiver : receivers) {
    if (receiver.kind != kHuggingFace || receiver.folder.empty() || is_gguf(receiver.folder))
      continue;
    const HuggingFaceModel model = HuggingFaceModel::open(receiver.folder);
    if (storage_in_place(model) != receiver.storage) continue;
    map_folder(receiver.folder, model.tensors(), model.names(receiver.decoder), receiver.scope(),
               weights);
  }
  if (encoder != nullptr) add_in_place(*encoder, weights);
  return weights;
}

TableStatistics table_statistics(Trace& trace, const Receiver& receiver) {
  const auto state = [&](const char* name, Shape shape) {
    return trace.state(receiver.scope() + ".statistics." + name, Role::frozen,
                       {DType::f32, std::move(shape)}, Initializer::ones());
  };
  return {state("rms", {}), state("mean", {receiver.decoder.width}),
          state("deviation", {receiver.decoder.width})};
}

void fill_receivers(const std::vector<Receiver>& receivers, State& state) {
  for (const Receiver& receiver : receivers) {
    if (receiver.folder.empty()) {
      fill_statistics(receiver, state);
      continue;
    }
    if (receiver.kind == kHuggingFace) {
      if (!state.is_lent(state.find(receiver.scope() + kTable)))
        fill_from_huggingface(receiver, state);
      fill_statistics(receiver, state);
      continue;
    }
    const WeightSource source = WeightSource::open(receiver.folder);
    std::vector<StateEntry> entries;
    std::vector<TableOrigins> origins;
    const std::string prefix = receiver.scope() + ".";
    for (const StateEntry& entry : state.entries()) {
      if (!entry.name.starts_with(prefix) || entry.name.starts_with(prefix + "statistics."))
        continue;
      entries.push_back(entry);
      origins.push_back({entry.name, entry.name.substr(prefix.size()), {}, {}});
    }
    const WeightTransfer transfer = source.plan(entries, origins);
    if (!transfer.is_whole())
      throw DataError(fmt::format("{}: weights do not fit receiver {}: {}", receiver.folder,
                                  receiver.name, transfer_differences(transfer)));
    source.fill(transfer, state);
    fill_statistics(receiver, state);
  }
}

}  // namespace fullbore::latentwire

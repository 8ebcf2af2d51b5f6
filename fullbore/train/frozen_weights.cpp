#include "fullbore/train/frozen_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

constexpr size_t kPathBytes = 200;  // of a stranger's path, in a message

}  // namespace

std::string FrozenWeights::path() const {
  std::string all;
  for (const Source& each : sources_) all += (all.empty() ? "" : ", ") + each.tensors.path();
  return all;
}

const FrozenWeights::Source* FrozenWeights::source_of(const std::string& parameter) const {
  const auto found = std::ranges::find_if(
      sources_, [&](const Source& each) { return !each.name(parameter).empty(); });
  return found == sources_.end() ? nullptr : &*found;
}

const MappedTensor* FrozenWeights::find(const std::string& parameter) const {
  const Source* const source = source_of(parameter);
  return source == nullptr ? nullptr : source->tensors.find(source->name(parameter));
}

std::optional<DType> FrozenWeights::storage(const std::string& parameter) const {
  const MappedTensor* const tensor = find(parameter);
  if (tensor == nullptr || !is_floating(tensor->type.dtype)) return std::nullopt;
  return tensor->type.dtype;
}

std::vector<LentEntry> FrozenWeights::lend(const std::vector<StateEntry>& entries) const {
  std::vector<LentEntry> lent;
  for (const StateEntry& entry : entries) {
    if (entry.role != Role::frozen) continue;
    const Source* const source = source_of(entry.name);
    if (source == nullptr) continue;
    const std::string wanted = source->name(entry.name);
    const MappedTensor* const tensor = source->tensors.find(wanted);
    if (tensor == nullptr) {
      std::vector<std::string> names;
      for (const MappedTensor& each : source->tensors.tensors()) names.push_back(each.name);
      throw DataError(fmt::format("{}: the frozen parameter '{}' is missing.{}",
                                  source->tensors.path(), wanted, did_you_mean(wanted, names)));
    }
    if (tensor->type != entry.type)
      throw DataError(fmt::format("{}: '{}' is {}, the model's '{}' is {}", tensor->file->path(),
                                  tensor->name, tensor->type.text(), entry.name,
                                  entry.type.text()));
    lent.push_back({entry.name, tensor->bytes, tensor->file});
  }
  return lent;
}

std::map<std::string, FrozenTensor> FrozenWeights::record(const State& state) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < state.entries().size(); ++i)
    if (state.is_lent(static_cast<int>(i))) names.push_back(state.entries()[i].name);
  return record(names);
}

std::map<std::string, FrozenTensor> FrozenWeights::record(
    const std::map<std::string, FrozenTensor>& recorded) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : recorded)
    if (find(name) != nullptr) names.push_back(name);
  return record(names);
}

std::map<std::string, FrozenTensor> FrozenWeights::record(
    const std::vector<std::string>& names) const {
  std::vector<const MappedTensor*> tensors;
  for (const std::string& name : names) tensors.push_back(find(name));
  const std::vector<std::string> hashes = tensor_hashes(tensors);
  std::map<std::string, FrozenTensor> record;
  for (size_t i = 0; i < names.size(); ++i)
    record[names[i]] = {hashes[i], tensors[i]->file->path()};
  return record;
}

void check_frozen(const std::map<std::string, FrozenTensor>& recorded,
                  const std::map<std::string, FrozenTensor>& here, const std::string& path) {
  for (const auto& [name, tensor] : recorded) {
    const auto found = here.find(name);
    if (found == here.end())
      throw DataError(fmt::format(
          "{}: the frozen parameter '{}' was read from {}, which is not followed because a "
          "checkpoint says so: name it by train.frozen_from or --frozen-from",
          path, excerpt(name), excerpt(tensor.file, kPathBytes)));
    if (found->second.hash != tensor.hash)
      throw DataError(fmt::format(
          "{}: the frozen parameter '{}' has the hash {}, that of the checkpoint {} has {} (read "
          "from {})",
          found->second.file, excerpt(name), found->second.hash, path, excerpt(tensor.hash),
          excerpt(tensor.file, kPathBytes)));
  }
  for (const auto& [name, tensor] : here)
    if (!recorded.contains(name))
      throw DataError(
          fmt::format("{}: the checkpoint holds '{}' itself, which {} cannot take the place of",
                      path, excerpt(name), tensor.file));
}

}  // namespace fullbore

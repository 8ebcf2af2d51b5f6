#include "fullbore/lab/diagnosis/idle_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

namespace fullbore {
namespace {

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

/// "layers.0.weight" of its moment "layers.0.weight.moment1"; "" of what is none.
std::string_view parameter_of(std::string_view moment) {
  const size_t dot = moment.rfind('.');
  return dot != moment.npos && moment.substr(dot).starts_with(".moment") ? moment.substr(0, dot)
                                                                         : std::string_view();
}

bool is_zero(const State& state, int entry, int64_t bytes) {
  std::vector<std::byte> values(static_cast<size_t>(bytes));
  state.read(entry, values);
  return all_zero(values);
}

Result<bool> is_zero(const Checkpoint& file, const StoredTensor& tensor) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  std::vector<std::byte> values(std::min(kPiece, tensor.bytes()));
  for (uint64_t at = 0; at < tensor.bytes(); at += kPiece) {
    const size_t count = std::min(kPiece, tensor.bytes() - at);
    if (Status s = file.read_part(tensor, at, count, values.data()); !s.ok())
      return Failure{s.error()};
    if (!all_zero(std::span(values).first(count))) return false;
  }
  return true;
}

/// By parameter: are all of its moments 0?
class Idle {
 public:
  void add(std::string_view parameter, bool zero) {
    const auto [known, is_new] = idle_.try_emplace(std::string(parameter), true);
    known->second = known->second && zero;
  }
  /// What has been seen to move needs no further look.
  bool may_be(std::string_view parameter) const {
    const auto known = idle_.find(parameter);
    return known == idle_.end() || known->second;
  }
  bool is(std::string_view parameter) const {
    const auto known = idle_.find(parameter);
    return known != idle_.end() && known->second;
  }

 private:
  std::map<std::string, bool, std::less<>> idle_;
};

}  // namespace

std::vector<std::string> idle_parameters(const State& state) {
  const std::vector<StateEntry>& entries = state.entries();
  Idle found;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].role != Role::moment) continue;
    const std::string_view parameter = parameter_of(entries[i].name);
    if (!parameter.empty() && found.may_be(parameter))
      found.add(parameter, is_zero(state, static_cast<int>(i), entries[i].type.bytes()));
  }
  std::vector<std::string> idle;
  for (const StateEntry& each : entries)
    if (each.role == Role::parameter && found.is(each.name)) idle.push_back(each.name);
  return idle;
}

Result<std::vector<std::string>> idle_parameters(const CheckpointFolder& checkpoint) {
  Idle found;
  std::vector<std::string> names;
  for (const std::string& group : checkpoint.groups()) {
    const Result<Checkpoint> file = checkpoint.group(group);
    if (!file.ok()) return Failure{file.error()};
    for (const StoredTensor& tensor : file.value().tensors()) {
      names.push_back(tensor.name);
      const std::string_view parameter = parameter_of(tensor.name);
      if (parameter.empty() || !found.may_be(parameter)) continue;
      const Result<bool> zero = is_zero(file.value(), tensor);
      if (!zero.ok()) return Failure{zero.error()};
      found.add(parameter, zero.value());
    }
  }
  // A parameter and its average have one name in two files.
  std::set<std::string> told;
  std::erase_if(
      names, [&](const std::string& name) { return !found.is(name) || !told.insert(name).second; });
  return names;
}

}  // namespace fullbore

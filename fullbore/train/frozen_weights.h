#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ckpt/mapped_tensors.h"
#include "fullbore/ckpt/run_record.h"
#include "fullbore/runtime/state.h"

namespace fullbore {

/// Frozen parameters that lie in safetensors files: mapped, so that the State neither copies nor saves them, and all
/// runs of a machine look at the same pages. What a checkpoint keeps of them is a hash and a path for people.
class FrozenWeights {
 public:
  /// The tensor of a parameter; none given: of the same name. "": these files are not where it lies.
  using NameOf = std::function<std::string(const std::string& parameter)>;
  explicit FrozenWeights(MappedTensors tensors, NameOf name_of = {}) {
    add(std::move(tensors), std::move(name_of));
  }
  /// Further files, for parameters that those before are not for.
  void add(MappedTensors tensors, NameOf name_of) {
    sources_.push_back({std::move(tensors), std::move(name_of)});
  }

  std::string path() const;  ///< of all, for people
  const MappedTensor* find(const std::string& parameter) const;
  /// The dtype that the parameter is stored in; none: it is in no file, or stored as what is no floating number.
  std::optional<DType> storage(const std::string& parameter) const;
  /// For the State: every entry of role `frozen` that the files are for. DataError names the file and the tensor that is
  /// missing, or of other extents or another dtype than the entry.
  std::vector<LentEntry> lend(const std::vector<StateEntry>& entries) const;
  /// For a checkpoint. Reads the files once, but for what is known of them already (tensor_hashes()).
  std::map<std::string, FrozenTensor> record(const State& state) const;
  /// The same of the parameters of an older record, as they are here; those that are missing here are left out.
  std::map<std::string, FrozenTensor> record(
      const std::map<std::string, FrozenTensor>& recorded) const;

 private:
  struct Source {
    MappedTensors tensors;
    NameOf name_of;
    std::string name(const std::string& parameter) const {
      return name_of ? name_of(parameter) : parameter;
    }
  };
  const Source* source_of(const std::string& parameter) const;  ///< nullptr: of none
  std::map<std::string, FrozenTensor> record(const std::vector<std::string>& names) const;

  std::vector<Source> sources_;
};

/// Is what a checkpoint at `path` says of frozen tensors true of those that are lent here? Its paths are not followed,
/// they are told: who made it may be a stranger. DataError names file and tensor that differ, or the setting by which
/// the user names the files.
void check_frozen(const std::map<std::string, FrozenTensor>& recorded,
                  const std::map<std::string, FrozenTensor>& here, const std::string& path);

}  // namespace fullbore

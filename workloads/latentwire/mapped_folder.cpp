#include "workloads/latentwire/mapped_folder.h"

#include <map>
#include <utility>

namespace fullbore::latentwire {

std::optional<DType> dtype_in_place(const HuggingFaceTensors& tensors,
                                    std::span<const HuggingFaceName> names) {
  std::optional<DType> dtype;
  for (const HuggingFaceName& name : names) {
    const DType each = tensors.find(name.theirs)->type().dtype;
    if (name.transposed || each != dtype.value_or(each)) return std::nullopt;
    dtype = each;
  }
  return dtype == DType::f64 ? std::nullopt : dtype;
}

void map_folder(const std::string& folder, const HuggingFaceTensors& tensors,
                std::span<const HuggingFaceName> names, const std::string& scope,
                std::shared_ptr<FrozenWeights>& weights) {
  std::map<std::string, std::string> theirs;
  for (const HuggingFaceName& name : names) theirs[scope + "." + name.ours] = name.theirs;
  const auto name_of = [theirs = std::move(theirs)](const std::string& parameter) {
    const auto found = theirs.find(parameter);
    return found == theirs.end() ? std::string() : found->second;
  };
  MappedTensors mapped = MappedTensors::open(folder, tensors.files());
  if (weights)
    weights->add(std::move(mapped), name_of);
  else
    weights = std::make_shared<FrozenWeights>(std::move(mapped), name_of);
}

}  // namespace fullbore::latentwire

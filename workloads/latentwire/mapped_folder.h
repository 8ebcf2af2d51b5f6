#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fullbore/text/huggingface_names.h"
#include "fullbore/text/huggingface_tensors.h"
#include "fullbore/train/frozen_weights.h"

namespace fullbore::latentwire {

/// The dtype that the tensors of a folder of transformers are read in where they lie: that of all of them. None if they are
/// of several, of f64, or lie otherwise than here, as those of GPT-2: such are copied, as f32.
std::optional<DType> dtype_in_place(const HuggingFaceTensors& tensors,
                                    std::span<const HuggingFaceName> names);

/// Adds the folder's files, mapped, for parameters `scope`.OURS; makes `weights` where it is null.
void map_folder(const std::string& folder, const HuggingFaceTensors& tensors,
                std::span<const HuggingFaceName> names, const std::string& scope,
                std::shared_ptr<FrozenWeights>& weights);

}  // namespace fullbore::latentwire

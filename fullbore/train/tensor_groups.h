#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/runtime/state.h"

namespace fullbore {

/// Which of a checkpoint's files are compressed.
enum class Compression : uint8_t { none, optimizer, all };
/// By the names above; aborts on another.
Compression compression(std::string_view name);

/// Is the entry kept by checkpoints? Not what is lent, nor keys and values of texts at hand (nn/key_value_cache.h): where
/// these lie is known to who reads them alone, and nothing goes on from them.
bool is_saved(const State& state, int entry);
/// Of all entries that are, with what lies between them.
int64_t saved_bytes(const State& state);

/// The State by role, as the files of a checkpoint: weights (parameters, frozen ones too), moving
/// averages (if there are any), optimizer (all the rest); what is lent is in none. Their tensors are handed out as the State is then, which must outlive
/// them.
std::vector<TensorGroup> tensor_groups(const State& state, Compression compression);

}  // namespace fullbore

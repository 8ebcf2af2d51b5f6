#include "fullbore/train/retired_names.h"

#include <algorithm>
#include <array>

namespace fullbore {
namespace {

struct Key {
  std::string_view retired;
  std::string_view now;
};

struct Word {
  std::string_view key;
  std::string_view retired;
  std::string_view now;
};

constexpr std::array<Key, 0> kKeys = {};

constexpr std::array kWords = {
    Word{"engine.disabled_passes", "fold_constants", "constant_folding"},
    Word{"engine.disabled_passes", "simplify", "algebraic_simplification"},
    Word{"engine.disabled_passes", "hoist_invariants", "loop_invariant_code_motion"},
    Word{"engine.disabled_passes", "merge_common", "common_subexpression_elimination"},
    Word{"engine.disabled_passes", "remove_dead", "dead_code_elimination"},
    Word{"engine.disabled_passes", "narrow_stacks", "reduce_residual_precision"},
    Word{"engine.disabled_passes", "narrow_storage", "reduce_intermediate_precision"},
    Word{"engine.disabled_passes", "gather_products", "batch_weight_gradients"},
    Word{"engine.disabled_passes", "accumulate_products", "gemm_accumulation"},
    Word{"engine.disabled_passes", "keep_copies", "low_precision_weight_copies"},
    Word{"engine.disabled_passes", "pack_factors", "prepack_operands"},
    Word{"engine.disabled_passes", "recompute", "rematerialize"},
};

}  // namespace

std::string_view renamed_key(std::string_view key) {
  const auto found = std::ranges::find(kKeys, key, &Key::retired);
  return found == kKeys.end() ? std::string_view() : found->now;
}

std::string_view renamed_value(std::string_view key, std::string_view value) {
  const auto found = std::ranges::find_if(
      kWords, [&](const Word& word) { return word.key == key && word.retired == value; });
  return found == kWords.end() ? std::string_view() : found->now;
}

}  // namespace fullbore

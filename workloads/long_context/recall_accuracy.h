#pragma once
#include <cstdint>
#include <functional>

#include "workloads/long_context/associative_recall.h"
#include "workloads/long_context/context_reader.h"

namespace fullbore::long_context {

struct RecallAccuracy {
  int64_t asked = 0;  ///< places that have a key again
  int64_t right = 0;  ///< whose likeliest next token is the key's value
  int64_t tokens = 0;
};

/// Key of an example to measure by; no example of the training curriculum has it.
uint64_t recall_key(uint64_t seed, const RecallSizes& sizes, int64_t example);

/// Lets the model read `examples` examples. `progress` is told of the tokens of each, and stops the
/// work by returning false.
RecallAccuracy measure_recall(ContextReader& reader, const RecallSizes& sizes, int64_t examples,
                              uint64_t seed, const std::function<bool(int64_t tokens)>& progress);

}  // namespace fullbore::long_context

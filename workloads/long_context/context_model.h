#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "fullbore/data/tokenizer.h"
#include "workloads/long_context/context_reader.h"

namespace fullbore {

/// Whoever is asked by the commands of long contexts.
struct ContextModel {
  std::string name;   ///< of the checkpoint; or oracle, random
  int64_t step = -1;  ///< of the checkpoint
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<long_context::ContextReader> reader;
};

/// `name`: a run directory (its best checkpoint) or a checkpoint; oracle, which reads needles off the
/// text; random, which guesses letters by `seed`. DataError as load_model() has it.
ContextModel open_context_model(const std::string& name, uint64_t seed);

}  // namespace fullbore

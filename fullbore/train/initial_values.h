#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// What a State begins with, entry by entry, moving averages left out: the same bits on any number of threads.
class InitialValues {
 public:
  InitialValues(const TracedStep& step, uint64_t seed)
      : seed_(seed), initializers_(step.initializers) {}
  /// Writes those of an entry of a State that nobody has written: what its initializer says, or the seed for
  /// `random.seed`. By all that the device has.
  void fill(State& state, int entry) const;

 private:
  uint64_t seed_;
  std::map<std::string, Initializer> initializers_;
};

}  // namespace fullbore

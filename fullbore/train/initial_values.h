#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// What a State begins with, entry by entry: the same bits wherever and whenever they are drawn.
class InitialValues {
 public:
  InitialValues(const TracedStep& step, uint64_t seed);
  /// Writes those of an entry of a State that nobody has written: what its initializer says, the seed for
  /// `random.seed`, and what a moving average is the average of. By all that the device has: the same bits.
  void fill(State& state, int entry) const;

 private:
  /// Whose draws are the entry's, or null for one of zeros.
  const Initializer* initializer_of(const std::string& name, std::string& drawn) const;

  uint64_t seed_;
  std::map<std::string, Initializer> initializers_;
  std::map<std::string, std::string> averaged_;  ///< parameters, by the name of their average
};

}  // namespace fullbore

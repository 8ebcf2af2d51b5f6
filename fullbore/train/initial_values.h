#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "fullbore/base/threads.h"
#include "fullbore/train/step_function.h"

namespace fullbore {

/// What a State begins with, entry by entry: the same bits wherever and whenever they are drawn.
class InitialValues {
 public:
  InitialValues(const TracedStep& step, uint64_t seed);
  /// Writes those of the entry `name` to memory that is zero: what its initializer says, the seed for
  /// `random.seed`, and what a moving average is the average of. A team shares the work and changes no bit.
  void fill(const std::string& name, const TensorType& type, void* zeroed,
            Team* team = nullptr) const;

 private:
  uint64_t seed_;
  std::map<std::string, Initializer> initializers_;
  std::map<std::string, std::string> averaged_;  ///< parameters, by the name of their average
};

}  // namespace fullbore

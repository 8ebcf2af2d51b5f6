#pragma once
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/lab/runs/run_folder.h"

namespace fullbore {

/// Something that two runs do not share, as texts for people.
struct Difference {
  std::string what;  ///< "optim.learning_rate", "made_by.processor"
  std::string a, b;
};

/// Settings that differ, by key, but for where the runs lie. A key that the model of one run does not have is "-" there.
std::vector<Difference> setting_differences(const RunFolder& a, const RunFolder& b);

/// What made the steps: build, device, hardware, instructions, workers. Runs of older versions say nothing of it.
std::vector<Difference> maker_differences(const RunFolder& a, const RunFolder& b);

/// Data, tokenizer, model and random key, as the last checkpoints of both tell. Failure: one of them has none.
Result<std::vector<Difference>> identity_differences(const RunFolder& a, const RunFolder& b);

/// A tensor of the last checkpoints' weights.
struct TensorDifference {
  std::string name;
  std::string type;  ///< "f32 [128,64]"
  std::string
      problem;         ///< why it is not compared: "only in A", "f32 [2] and f32 [3]"; empty: it is
  bool equal = false;  ///< every bit
  double largest =
      0;  ///< distance of two elements; not a number: one has elements that are none, where the other has not
  double relative = 0;  ///< root of the sum of squared distances, over that of A's squares
};

/// Both runs' weights, by name, element by element; memory of a few megabytes whatever their size. `progress` is told
/// the share that is done. Failure: a checkpoint cannot be read.
Result<std::vector<TensorDifference>> weight_differences(
    const RunFolder& a, const RunFolder& b, const std::function<void(double share)>& progress = {});

}  // namespace fullbore

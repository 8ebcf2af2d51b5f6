#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cuda/executor/launch_sink.h"
#include "fullbore/device/cuda/executor/merged_code.h"

namespace fullbore::cuda {

/// Kernels of the same launches but for numbers of blocks and arguments.
struct LaunchKind {
  int number = -1;
  std::vector<MergedCode> codes;  ///< of each launch
  int most = 1;                   ///< kernels that may become one
};

/// The kinds of small kernels of a program. Those that fill the card by themselves have none: they gain nothing by waiting
/// for others. Nor have those that a library makes.
class LaunchKinds {
 public:
  explicit LaunchKinds(int multiprocessors) : multiprocessors_(multiprocessors) {}
  /// Null: it stays alone. Valid as long as this lives.
  const LaunchKind* of(const LoadedKernel& kernel);

 private:
  int multiprocessors_;
  std::map<std::string, LaunchKind> kinds_;
};

}  // namespace fullbore::cuda

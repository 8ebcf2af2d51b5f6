#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/ir/literal.h"

namespace fullbore::testing_support {

/// How a kernel's items are shared out, and where its buffers lie.
struct RunOptions {
  int workers = 1;
  /// Instead of equal shares in order: random cuts, drawn from this seed, the last range first. 0: no.
  uint64_t cuts_seed = 0;
  bool misaligned = false;  ///< every buffer one element off a multiple of 64 bytes
  bool at_page_ends =
      false;             ///< a page that kills who reads it lies behind each input; not in place
  int alias_input = -1;  ///< output `alias_output` occupies the bytes of this input
  int alias_output = -1;
  std::string text() const;
};

struct RunResult {
  std::vector<std::vector<char>> outputs;  ///< bytes, in storage format
  std::string problem;                     ///< "" or what was written that should not have been
};

/// Runs a kernel on one thread in the name of several workers. Outputs and scratch begin as noise,
/// every buffer lies between guard bytes, and inputs must come out as they went in.
RunResult run_kernel(const Kernel& kernel, const std::vector<const Literal*>& inputs,
                     const std::vector<TensorType>& outputs, const RunOptions& options);

/// Runs a kernel in all the ways that must give the same bits: 1, 2 and 3 workers, random cuts,
/// misaligned, inputs at the ends of pages, and for each pair that may_alias, in place. Returns the
/// outputs; `problem` names the way that differs.
RunResult run_kernel_in_all_ways(const Kernel& kernel, const std::vector<const Literal*>& inputs,
                                 const std::vector<TensorType>& outputs);

}  // namespace fullbore::testing_support

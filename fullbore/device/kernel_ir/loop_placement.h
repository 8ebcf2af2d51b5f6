#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/device/kernel_ir/kernel_ir.h"

namespace fullbore::jit {

/// Where an instruction is evaluated, outermost first.
enum class Scope : uint8_t {
  kernel,  ///< once per call
  row,     ///< once per row; in column kernels once per row and group of lanes
  serial,  ///< once per index of the serial loops, equal in all lanes
  element  ///< innermost, once per vector of lanes
};

/// What follows from a kernel's dependences: scopes, and the walks over a row that its reductions
/// force.
struct LoopPlacement {
  std::vector<Scope> scope;  ///< per instruction
  /// Per instruction: the walk before which (row scope) or from which on (element scope) it can be
  /// evaluated. The result of a reduction made in walk p is available at p + 1.
  std::vector<int> available;
  int walks = 0;
  /// Per walk, per instruction: is it evaluated there (element and serial scope)?
  std::vector<std::vector<bool>> needed;
  /// Per instruction: where its values are kept between walks because computing them again would
  /// cost more (an index of rows of scratch memory), or -1; and the walk that computes them.
  std::vector<int> slot;
  std::vector<int> first_walk;
  int slots = 0;
  /// Per store: in the last walk, rather than once at the end of the row? Nothing is stored earlier,
  /// so that an output may lie on top of an input that every walk reads.
  std::vector<bool> in_walk;
};

/// `keeps_values`: costly values that several walks need may have slots.
LoopPlacement place_in_loops(const KernelIr& kernel, bool keeps_values = true);

/// Bytes of a row of scratch memory, serial loops and lanes, large enough for any dtype.
inline int64_t slot_bytes(const KernelIr& kernel) {
  int64_t elements = kernel.lanes;
  for (int64_t extent : kernel.serial) elements *= extent;
  return elements * 8;
}

}  // namespace fullbore::jit

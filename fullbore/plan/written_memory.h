#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/plan/plan.h"

namespace fullbore {

/// Bytes [begin, end) of an arena.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// Where in their arena the programs write or read on every run, in order and apart from each other. Left out is what
/// belongs alone to stacks of loops whose iterations are counted while they run, and to what gathers that are told how many
/// rows there are read and make (GatherSumCounts): rows whose iteration is never made, or that are beyond the count, are
/// never touched, and need no memory of the machine.
std::vector<ByteRange> written_memory(std::span<const Plan* const> plans);

/// The bytes in any of these ranges, in order and apart from each other.
std::vector<ByteRange> merged(std::vector<ByteRange> ranges);

}  // namespace fullbore

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/plan/plan.h"

namespace fullbore {

/// What lives when in the arena: a line per buffer with its place, its size, its first and last
/// launch, a bar of `columns` (at least 8) characters that stands for the whole replay, and what it is;
/// ordered by first launch. What thread groups of a parallel loop have each is told once, at the first one's place.
/// Above them, how many bytes live at most, and at which launch. Time is counted in launches, a loop's
/// body once.
///
///     launches 0-212, arena 38085632 bytes (36.3 MiB), at most 38085632 live (launch 97)
///         offset      size from   to
///              0   384 KiB    0  141 |##########      | %89 gather token_embedding
std::string timeline_text(const Plan& plan, int columns = 16);

/// Bytes of the arena that live at each launch, as if thread groups kept step.
std::vector<int64_t> live_bytes(const Plan& plan);
/// The same while each entry of the plan's launch list (launch_list.h) runs; of a loop, when it begins.
std::vector<int64_t> live_bytes_by_entry(const Plan& plan);

}  // namespace fullbore

#pragma once
#include "fullbore/plan/plan.h"

namespace fullbore {

/// Clears PlannedLaunch::waits of each launch that may run beside those before it, back to the last one that
/// waits: none of them writes a byte that another reads or writes. Such a run of launches is a
/// level.
/// Small kernels of one kind (the updates of all parameters, the sums of their squares, the
/// projections of one input) so cost one barrier of the thread pool instead of one each, and each worker
/// takes whole ones. Loops are alone; a level never leaves its loop's body.
///
/// After places are known, for bytes decide, not values: a level costs no memory.
void find_concurrent_launches(Plan& plan);

}  // namespace fullbore

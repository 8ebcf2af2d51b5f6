#pragma once
#include <memory>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/peaks.h"

namespace fullbore::cuda {

/// What a card can do at most: bandwidth by copies within its memory, fp32 by chains of fused multiply-adds, bf16 and tf32 by chains of
/// tensor-core products, each as long as it takes to be timed well.
MeasuredPeaks measure_peaks(const std::shared_ptr<Context>& context, const PeakMemory& memory);

}  // namespace fullbore::cuda

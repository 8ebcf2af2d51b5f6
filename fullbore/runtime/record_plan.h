#pragma once
#include <memory>
#include <span>

#include "fullbore/device/device.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

/// Where the buffers of a plan lie that are not placed in another: by index of Plan::buffers, those of the arena, of
/// State, constants and results. Others are ignored.
using BufferAddresses = std::span<const Address>;

/// Walks the launch list of a plan into a recorder of the device: what is launched, on which addresses. Batch inputs are
/// numbered in the graph's order. The plan must outlive what is recorded.
std::unique_ptr<Replayable> record_plan(const Plan& plan, BufferAddresses addresses,
                                        Device& device);

}  // namespace fullbore

#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// The kernels that are not compiled from kernel IR, for each op best first: registered ones (register_cpu_kernel), then
/// those written by hand here. What is not in the list, or declines, is.
const std::vector<KernelMaker>& kernel_list();

/// Composite ops that registered kernels are for, and dtypes of their first operand.
const std::map<std::string, std::set<DType>>& registered_composites();

}  // namespace fullbore::cpu

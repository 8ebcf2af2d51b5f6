#pragma once
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// A KernelMaker, its op known by address.
struct ListedKernel {
  ListedKernel(const OpDef& for_op, std::string_view kernel, decltype(KernelMaker::make) maker)
      : op(&for_op), name(kernel), make(maker) {}

  const OpDef* op;
  std::string_view name;
  decltype(KernelMaker::make) make;
};

/// The kernels that are not compiled from kernel IR, for each op best first: registered ones (register_cpu_kernel), then
/// those written by hand here. What is not in the list, or declines, is.
const std::vector<ListedKernel>& kernel_list();

/// Composite ops that registered kernels are for, and dtypes of their first operand.
std::map<const OpDef*, std::set<DType>> registered_composites();

}  // namespace fullbore::cpu

#include "fullbore/device/cpu/kernel_list.h"

#include <algorithm>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/gemm/onednn_matmul.h"
#include "fullbore/device/cpu/gemm/panel_matmul.h"
#include "fullbore/device/cpu/kernels/dropout_mask.h"
#include "fullbore/device/cpu/kernels/gather.h"
#include "fullbore/device/cpu/kernels/scatter.h"
#include "fullbore/device/cpu/kernels/sort.h"
#include "fullbore/device/cpu/quant/quantized_linear.h"
#include "fullbore/device/cpu/recurrence/recurrence.h"
#include "fullbore/ir/number_everywhere.h"

namespace fullbore {

bool KernelRequest::is_read(size_t output) const {
  const Value value = node_.outputs[output];
  return std::ranges::any_of(graph_.outputs(),
                             [&](const Graph::Output& o) { return o.value == value; }) ||
         std::ranges::any_of(graph_.nodes(), [&](const Node& node) {
           return std::ranges::count(node.inputs, value) > 0;
         });
}

bool KernelRequest::is_zero(size_t input) const {
  return number_everywhere(graph_, node_.inputs[input]) == 0.0;
}

namespace cpu {
namespace {

struct Registered {
  std::vector<KernelMaker> makers;
  std::map<std::string, std::set<DType>> composites;
};

// Static variables of other files fill it, in whatever order they are made.
Registered& registered() {
  static Registered all;
  return all;
}

const std::vector<KernelMaker>& own_kernels() {
  static const std::vector<KernelMaker> list = {
      {"attention", "rows", cpu::make_attention_rows},
      {"attention", "tiled", cpu::make_attention},
      {"attention_gradient", "tiled", cpu::make_attention_gradient},
      {"dropout_mask", "draws", cpu::make_dropout_mask},
      {"gather", "copy", cpu::make_gather},
      {"matmul", "dot", cpu::make_dot_matmul},
      {"matmul", "pairs", cpu::make_pair_matmul},
      {"matmul", "onednn", cpu::make_onednn_matmul},
      {"matmul", "panel", cpu::make_panel_matmul},
      {"matmul_add", "pairs", cpu::make_pair_matmul},
      {"matmul_add", "panel", cpu::make_panel_matmul},
      {"pack_panels", "copy", cpu::make_pack_panels},
      {"packed_attention", "tiled", cpu::make_attention},
      {"packed_attention_gradient", "tiled", cpu::make_attention_gradient},
      {"panel_matmul", "panel", cpu::make_matmul_of_panels},
      {"quantized_linear", "int8", cpu::make_quantized_linear},
      {"recurrence_gradient", "chunks", cpu::make_recurrence_gradient},
      {"recurrence_outputs", "chunks", cpu::make_recurrence_outputs},
      {"recurrence_states", "walk", cpu::make_recurrence_states},
      {"scatter_add", "scatter", cpu::make_scatter_add},
      {"scatter_along_axis", "scatter", cpu::make_scatter_along_axis},
      {"sort", "radix", cpu::make_sort},
      {"take_along_axis", "copy", cpu::make_take_along_axis},
  };
  return list;
}

}  // namespace

const std::vector<KernelMaker>& kernel_list() {
  static const std::vector<KernelMaker> list = [] {
    std::vector<KernelMaker> all = registered().makers;
    all.insert(all.end(), own_kernels().begin(), own_kernels().end());
    return all;
  }();
  return list;
}

const std::map<std::string, std::set<DType>>& registered_composites() {
  return registered().composites;
}

}  // namespace cpu

void register_cpu_kernel(const KernelMaker& maker, std::set<DType> composite_dtypes) {
  cpu::Registered& all = cpu::registered();
  all.makers.push_back(maker);
  if (!composite_dtypes.empty())
    all.composites[std::string(maker.op)].merge(std::move(composite_dtypes));
}

}  // namespace fullbore

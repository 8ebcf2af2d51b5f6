#include "fullbore/device/cpu/kernel_list.h"

#include <algorithm>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/convolution/convolution.h"
#include "fullbore/device/cpu/gemm/amx_matmul.h"
#include "fullbore/device/cpu/gemm/amx_tiled_matmul.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/device/cpu/kernels/dropout_mask.h"
#include "fullbore/device/cpu/kernels/gather.h"
#include "fullbore/device/cpu/kernels/gather_sum.h"
#include "fullbore/device/cpu/kernels/index_add.h"
#include "fullbore/device/cpu/kernels/scatter.h"
#include "fullbore/device/cpu/kernels/scatter_max.h"
#include "fullbore/device/cpu/kernels/sort.h"
#include "fullbore/device/cpu/kernels/update_rows.h"
#include "fullbore/device/cpu/quant/quantized_linear.h"
#include "fullbore/device/cpu/recurrence/recurrence.h"
#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/paged_attention.h"
#include "fullbore/ops/selection.h"
#include "fullbore/ops/update_rows.h"
#include "fullbore/ops/winograd_convolution.h"

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

// Static variables of other files fill it, in whatever order they are made: their ops may not be known yet.
Registered& registered() {
  static Registered all;
  return all;
}

const std::vector<ListedKernel>& own_kernels() {
  static const std::vector<ListedKernel> list = {
      {op::attention, "rows", make_attention_rows},
      {op::attention, "tiled", make_attention},
      {op::attention_gradient, "tiled", make_attention_gradient},
      {op::convolution, "planes", make_plane_convolution},
      {op::convolution, "packed", make_convolution},
      {op::convolution_weight_gradient, "depthwise", make_depthwise_weight_gradient},
      {op::convolution_weight_gradient, "planes", make_plane_weight_gradient},
      {op::convolution_weight_gradient, "few channels", make_few_channel_weight_gradient},
      {op::convolution_weight_gradient, "lines", make_convolution_weight_gradient},
      {op::dropout_mask, "draws", make_dropout_mask},
      {op::gather, "copy", make_gather},
      {op::gather_sum, "rows", make_gather_sum},
      {op::index_add, "rows", make_index_add},
      {op::matmul, "dot", make_dot_matmul},
      {op::matmul, "vnni", make_vnni_matmul},
      {op::matmul, "amx", make_amx_tiled_matmul},
      {op::matmul, "tiled", make_tiled_matmul},
      {op::matmul_add, "amx", make_amx_tiled_matmul},
      {op::matmul_add, "vnni", make_vnni_matmul},
      {op::matmul_add, "tiled", make_tiled_matmul},
      {op::paged_attention, "rows", make_paged_attention},
      {op::prepack, "copy", make_prepack},
      {op::packed_attention, "tiled", make_attention},
      {op::packed_attention_gradient, "tiled", make_attention_gradient},
      {op::prepacked_matmul, "amx", make_amx_matmul},
      {op::prepacked_matmul, "tiled", make_prepacked_matmul},
      {op::quantized_linear, "int8", make_quantized_linear},
      {op::recurrence_gradient, "chunks", make_recurrence_gradient},
      {op::recurrence_outputs, "chunks", make_recurrence_outputs},
      {op::recurrence_states, "walk", make_recurrence_states},
      {op::scatter_add, "scatter", make_scatter_add},
      {op::scatter_along_axis, "scatter", make_scatter_along_axis},
      {op::scatter_max, "compare", make_scatter_max},
      {op::sort, "radix", make_sort},
      {op::take_along_axis, "copy", make_take_along_axis},
      {op::update_rows, "in place", make_update_rows},
      {op::winograd_convolution, "tiles", make_winograd_convolution},
  };
  return list;
}

}  // namespace

const std::vector<ListedKernel>& kernel_list() {
  static const std::vector<ListedKernel> list = [] {
    std::vector<ListedKernel> all;
    for (const KernelMaker& each : registered().makers)
      all.emplace_back(get_op(each.op), each.name, each.make);
    all.insert(all.end(), own_kernels().begin(), own_kernels().end());
    return all;
  }();
  return list;
}

std::map<const OpDef*, std::set<DType>> registered_composites() {
  std::map<const OpDef*, std::set<DType>> composites;
  for (const auto& [op, dtypes] : registered().composites) composites.emplace(&get_op(op), dtypes);
  return composites;
}

}  // namespace cpu

void register_cpu_kernel(const KernelMaker& maker, std::set<DType> composite_dtypes) {
  cpu::Registered& all = cpu::registered();
  all.makers.push_back(maker);
  if (!composite_dtypes.empty())
    all.composites[std::string(maker.op)].merge(std::move(composite_dtypes));
}

}  // namespace fullbore

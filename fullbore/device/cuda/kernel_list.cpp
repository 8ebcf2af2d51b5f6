#include "fullbore/device/cuda/kernel_list.h"

#include <fmt/format.h>

#include <string_view>

#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/matmul_bias.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/paged_attention.h"
#include "fullbore/ops/selection.h"
#include "fullbore/ops/update_rows.h"

namespace fullbore::cuda {
namespace {

struct ListedKernel {
  ListedKernel(const OpDef& for_op, std::string_view kernel,
               std::unique_ptr<CudaKernel> (*maker)(const Request&, std::string*))
      : op(&for_op), name(kernel), make(maker) {}

  const OpDef* op;
  std::string_view name;
  std::unique_ptr<CudaKernel> (*make)(const Request& request, std::string* why_not);
};

/// For each op best first.
const std::vector<ListedKernel>& kernel_list() {
  static const std::vector<ListedKernel> list = {
      {op::attention, "tiled", make_attention},
      {op::attention_gradient, "tiled", make_attention_gradient},
      {op::convolution, "direct", make_convolution},
      {op::convolution_weight_gradient, "direct", make_convolution_weight_gradient},
      {op::dropout_mask, "draws", make_dropout_mask},
      {op::fp8_matmul, "tensor cores", make_fp8_matmul},
      {op::gather, "copy", make_gather},
      {op::gather_sum, "rows", make_gather_sum},
      {op::matmul, "clusters of two blocks", make_cluster_matmul},
      {op::matmul, "warpgroups", make_warpgroup_matmul},
      {op::matmul, "tensor cores", make_tensor_core_matmul},
      {op::matmul, "plain", make_plain_matmul},
      {op::matmul_add, "clusters of two blocks", make_cluster_matmul},
      {op::matmul_add, "warpgroups", make_warpgroup_matmul},
      {op::matmul_add, "tensor cores", make_tensor_core_matmul},
      {op::matmul_add, "plain", make_plain_matmul},
      {op::matmul_bias, "clusters of two blocks", make_cluster_matmul},
      {op::matmul_bias, "warpgroups", make_warpgroup_matmul},
      {op::matmul_bias, "tensor cores", make_tensor_core_matmul},
      {op::packed_attention, "tiled", make_attention},
      {op::packed_attention_gradient, "tiled", make_attention_gradient},
      {op::paged_attention, "parts", make_paged_attention},
      {op::quantized_linear, "tensor cores", make_quantized_linear},
      {op::recurrence_gradient, "walks", make_recurrence_gradient},
      {op::recurrence_outputs, "walk", make_recurrence_outputs},
      {op::recurrence_states, "walk", make_recurrence_states},
      {op::scatter_add, "tiles", make_scatter_add},
      {op::scatter_along_axis, "walk", make_scatter_along_axis},
      {op::scatter_max, "walk", make_scatter_max},
      {op::sort, "bitonic", make_sort},
      {op::take_along_axis, "copy", make_take_along_axis},
      {op::update_rows, "last", make_update_rows},
  };
  return list;
}

bool has_no_results(const Request& request) {
  for (size_t i = 0; i < request.node.outputs.size(); ++i)
    if (request.output(i).elements() > 0) return false;
  return true;
}

}  // namespace

std::unique_ptr<CudaKernel> make_listed_kernel(const Request& request, std::string* why_not) {
  std::string reasons;
  for (const ListedKernel& each : kernel_list()) {
    if (each.op != request.node.op) continue;
    if (has_no_results(request))
      return std::make_unique<CudaKernel>(
          std::vector<Launch>{},
          CudaKernel::Description{.text = fmt::format("empty {}", each.op->name)});
    std::string reason;
    if (auto kernel = each.make(request, &reason)) return kernel;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", each.name, reason);
  }
  if (why_not != nullptr)
    *why_not = reasons.empty() ? fmt::format("no kernel is written for {}", request.node.op->name)
                               : reasons;
  return nullptr;
}

std::set<const OpDef*> listed_ops() {
  std::set<const OpDef*> ops;
  for (const ListedKernel& each : kernel_list()) ops.insert(each.op);
  return ops;
}

std::map<const OpDef*, std::set<DType>> listed_composites() {
  std::map<const OpDef*, std::set<DType>> composites;
  composites[&op::matmul_add.get()] = {DType::f64, DType::f32, DType::bf16, DType::f16};
  composites[&op::matmul_bias.get()] = {DType::bf16, DType::f16};
  composites[&op::dropout_mask.get()] = {DType::i64};
  composites[&op::fp8_matmul.get()] = {DType::f32, DType::bf16};
  for (const OpHandle* const each :
       {&op::attention, &op::attention_gradient, &op::packed_attention,
        &op::packed_attention_gradient, &op::paged_attention, &op::quantized_linear,
        &op::recurrence_gradient, &op::recurrence_outputs, &op::recurrence_states})
    composites[&each->get()] = {DType::f32, DType::bf16, DType::f16};
  return composites;
}

}  // namespace fullbore::cuda

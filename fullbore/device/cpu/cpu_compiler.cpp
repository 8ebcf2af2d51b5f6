#include "fullbore/device/cpu/cpu_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/codegen/epilogue.h"
#include "fullbore/device/cpu/gemm/packing_target.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/device/cpu/kernel_list.h"
#include "fullbore/device/cpu/kernels/reference.h"
#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/paged_attention.h"
#include "fullbore/ops/winograd_convolution.h"

namespace fullbore::cpu {
namespace {

std::string operand_types(const KernelRequest& request) {
  std::string text;
  for (size_t i = 0; i < request.node().inputs.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", request.input(i).text());
  return text;
}

std::string origin(const Node& node) {
  return node.location.empty() ? "" : fmt::format(" ({})", node.location);
}

std::string refusal(const KernelRequest& request, const std::string& why_not) {
  return fmt::format("{}: the cpu device has no kernel for {}{}", request.node().op->name,
                     operand_types(request), why_not);
}

bool has_no_results(const KernelRequest& request) {
  for (size_t i = 0; i < request.node().outputs.size(); ++i)
    if (request.output(i).elements() > 0) return false;
  return true;
}

bool is_recurrence(const Node& node) {
  return node.op == op::recurrence_states || node.op == op::recurrence_outputs ||
         node.op == op::recurrence_gradient;
}

/// Of a node whose results have no elements, whatever its op.
class EmptyKernel final : public CpuKernel {
 public:
  explicit EmptyKernel(std::string_view op) : op_(op) {}
  int64_t items() const override { return 0; }
  double nanoseconds() const override { return 0; }
  void run(void* const*, int64_t, int64_t, int) const override {}
  std::string description() const override { return fmt::format("empty {}", op_); }

 private:
  std::string_view op_;
};

}  // namespace

CpuCompiler::CpuCompiler() = default;
CpuCompiler::~CpuCompiler() = default;

Target cpu_target(int threads) {
  Target target;
  target.name = "cpu";
  target.threads = threads;
  target.native_bf16 = this_processor().avx512_bf16;
  const auto native = [&](const OpDef& op) -> std::set<DType>& { return target.native_ops[&op]; };
  for (const OpHandle* handle :
       {&op::attention, &op::attention_gradient, &op::packed_attention,
        &op::packed_attention_gradient, &op::paged_attention, &op::quantized_linear,
        &op::recurrence_states, &op::recurrence_outputs, &op::recurrence_gradient})
    native(*handle) = {DType::f32, DType::bf16, DType::f16};
  const std::set<DType> gemm_dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  native(op::matmul_add) = native(op::prepacked_matmul) = gemm_dtypes;
  std::set<DType> with_epilogue = gemm_dtypes;
  // Where the processor has tiles for bf16, matmuls by them and what is behind apart are faster.
  if (this_processor().amx_bf16) with_epilogue.erase(DType::bf16);
  // Fewer go through dot products, which read the matrix where it lies.
  target.epilogues = {.operand_dtypes = std::move(with_epilogue),
                      .fewest_rows = kMostDotRows + 1,
                      .near_bytes = 768 << 10};
  target.offers_row_invariance = true;
  target.narrow_from = 1024;  // 4 KiB: what is smaller lies in the first cache until it is read
  target.packing = packing_target();
  native(op::index_add) = gemm_dtypes;
  native(op::prepack) = {DType::f64, DType::f32, DType::bf16, DType::f16};
  // The dot products of AVX512_BF16 make the sum as it is written as fast, and AMX faster.
  native(op::winograd_convolution) = {DType::f32, DType::f16};
  if (!this_processor().avx512_bf16) native(op::winograd_convolution).insert(DType::bf16);
  native(op::dropout_mask) = {DType::i64};
  for (const auto& [op, dtypes] : registered_composites())
    native(*op).insert(dtypes.begin(), dtypes.end());
  return target;
}

void CpuCompiler::compile_for(const Target& target) {
  effort_ = target.compile;
  if (effort_ == CompileEffort::fast) jit_.use_quick_code();
  row_invariant_ = target.row_invariant;
  jit_.set_row_invariant(row_invariant_);
}

std::unique_ptr<Kernel> CpuCompiler::compile(const Graph& graph, const Node& node, int workers) {
  KernelRequest request(graph, node, workers, row_invariant_);
  if (has_no_results(request)) return std::make_unique<EmptyKernel>(node.op->name);
  if (effort_ == CompileEffort::off) return std::make_unique<ReferenceCpuKernel>(graph, node);
  if (row_invariant_ && is_recurrence(node))
    throw UsageError(fmt::format(
        "{}: recurrences are computed in chunks, whose sums depend on the length of a step; "
        "engine.row_invariant=false{}",
        node.op->name, origin(node)));
  if (fused_matmul(node)) return compile_matmul(request);
  std::string why_not;
  for (const ListedKernel& maker : kernel_list()) {
    if (maker.op != node.op) continue;
    if (auto kernel = maker.make(request)) return kernel;
    why_not += fmt::format("; {}: {}", maker.name, request.reason());
  }
  std::string not_lowered;
  if (auto kernel = jit_.add(graph, node, workers, &not_lowered)) return kernel;
  return fall_back(request, why_not + "; jit: " + not_lowered);
}

// Rows of a kernel that nobody made for it would have other bits in a step of another kind.
std::unique_ptr<Kernel> CpuCompiler::fall_back(const KernelRequest& request,
                                               const std::string& why_not) {
  const Node& node = request.node();
  if (row_invariant_) throw UsageError(refusal(request, why_not) + origin(node));
  KernelFallback fallback{node_text(request.graph(), node), node.location,
                          refusal(request, why_not)};
  if (std::ranges::find(without_kernel_, fallback) == without_kernel_.end())
    without_kernel_.push_back(std::move(fallback));
  return std::make_unique<ReferenceCpuKernel>(request.graph(), node);
}

std::unique_ptr<Kernel> CpuCompiler::compile_matmul(KernelRequest& request) {
  std::string why_not;
  if (auto epilogue = jit_.add_epilogue(request.graph(), request.node(), &why_not))
    return jit_.with_reference(make_matmul_with_epilogue(request, std::move(epilogue)),
                               request.graph(), request.node());
  return fall_back(request, "; jit: " + why_not);
}

void CpuCompiler::finish() { jit_.finish(); }

std::vector<KernelFallback> CpuCompiler::fallbacks() const {
  std::vector<KernelFallback> all = without_kernel_;
  const std::vector<KernelFallback> without_code = jit_.fallbacks();
  all.insert(all.end(), without_code.begin(), without_code.end());
  return all;
}

}  // namespace fullbore::cpu

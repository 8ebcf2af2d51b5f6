#include "fullbore/device/cuda/cuda_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/device/cuda/codegen/generated_kernel.h"
#include "fullbore/device/cuda/kernel_list.h"
#include "fullbore/device/cuda/makers/library_matmul.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::cuda {
namespace {

bool has_no_results(const Graph& graph, const Node& node) {
  for (const Value value : node.outputs)
    if (graph.type(value).elements() > 0) return false;
  return true;
}

std::string operand_types(const Request& request) {
  std::string text;
  for (size_t i = 0; i < request.node.inputs.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", request.input(i).text());
  return text;
}

}  // namespace

void CudaCompiler::compile_for(const Target& target) {
  effort_ = target.compile;
  library_ = nullptr;
  no_library_.clear();
  if (!target.cublaslt) return;
  if (context_)
    library_ = context_->library_matmuls(&no_library_);
  else
    no_library_ = "the card is not at hand";
}

// Null where another kernel has to be made.
std::unique_ptr<CudaKernel> CudaCompiler::library_kernel(const Request& request) {
  if (library_ == nullptr || !is_library_matmul(request.node)) return nullptr;
  std::string why_not;
  std::unique_ptr<CudaKernel> kernel = make_library_matmul(request, *library_, &why_not);
  if (!kernel)
    declined_.try_emplace(fmt::format("{} {}", request.node.op->name, operand_types(request)),
                          why_not);
  return kernel;
}

std::vector<std::string> CudaCompiler::notices() const {
  if (!no_library_.empty())
    return {
        fmt::format("engine.cublaslt: the card's own kernels make all matmuls: {}", no_library_)};
  if (declined_.empty()) return {};
  const auto& [first, why] = *declined_.begin();
  return {fmt::format("engine.cublaslt: the card's own kernels make {} kind{} of matmul, {}{}: {}",
                      declined_.size(), declined_.size() == 1 ? "" : "s",
                      declined_.size() == 1 ? "" : "the first ", first, why)};
}

std::unique_ptr<Kernel> CudaCompiler::compile(const Graph& graph, const Node& node, int) {
  if (has_no_results(graph, node)) return std::make_unique<CompiledNode>(nullptr, graph, node);
  if (effort_ == CompileEffort::off)
    throw UsageError(
        "engine.compile=off runs each op by its reference, which a card has none of: use "
        "engine.device=cpu or reference with it");
  const Request request{graph, node, card_};
  std::string why_not;
  std::unique_ptr<CudaKernel> kernel = library_kernel(request);
  if (!kernel) kernel = make_listed_kernel(request, &why_not);
  std::string not_generated;
  if (!kernel) kernel = make_generated_kernel(request, &not_generated);
  if (kernel) {
    launches_.insert(launches_.end(), kernel->launches().begin(), kernel->launches().end());
    return std::make_unique<CompiledNode>(std::move(kernel), graph, node);
  }
  throw UsageError(fmt::format(
      "{}: the cuda device has no kernel for {}{}{}; generated code: {}; engine.device=cpu has "
      "one{}",
      node.op->name, operand_types(request), why_not.empty() ? "" : "; ", why_not, not_generated,
      node.location.empty() ? "" : fmt::format(" ({})", node.location)));
}

void CudaCompiler::finish() {
  std::vector<LoadRequest> entries;
  for (const Launch& launch : launches_)
    entries.push_back({launch.module, launch.entry, launch.dynamic_shared_bytes});
  if (context_) context_->load(entries);
  launches_.clear();
}

Target cuda_target(const CardFacts& card) {
  // A block of logits has temporaries of many times its bytes: a small part of the memory, 2048 rows of GPT-2 on an H200.
  constexpr int64_t kMostLogits = int64_t{1} << 30, kShare = 256;
  Target target;
  target.name = "cuda";
  target.threads = 1;
  target.native_bf16 = true;
  target.offers_cublaslt = true;
  target.offers_tf32 = true;  // from capability 8.0 on, which is asked of every card
  target.logits_bytes = std::min(kMostLogits, card.memory_bytes / kShare);
  target.native_ops = listed_composites();
  target.why_no_fp8 = why_no_fp8(card);
  if (!target.why_no_fp8.empty()) target.native_ops.erase(&op::fp8_matmul.get());
  // Named for no dtype: with none named at all, every composite would count as supported.
  target.native_ops.try_emplace(&static_cast<const OpDef&>(op::attention));
  return target;
}

}  // namespace fullbore::cuda

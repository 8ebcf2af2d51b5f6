#include "fullbore/device/cuda/makers/library_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kAlignment = 256;
// Taken to be that of our own large products (makers/matmul.cpp).
constexpr double kShareOfPeak = 0.75;

/// What addresses of such a value are multiples of: a loop may hand over one of several that lie one after another.
int64_t alignment_of(const TensorType& type) {
  const int64_t bytes = type.bytes();
  return std::min(kAlignment, bytes & -bytes);
}

MatmulProblem problem_of(const Request& request) {
  MatmulProblem problem;
  const Attributes& attributes = request.node.attributes;
  problem.transpose_a = attributes.get<bool>("transpose_a");
  problem.transpose_b = attributes.get<bool>("transpose_b");
  problem.operands = request.input(0).dtype;
  problem.result = request.output(0).dtype;
  problem.tf32 = problem.operands == DType::f32 && attributes.get_or("tf32", false);
  problem.adds_c = request.node.op == op::matmul_add;
  const Shape &a = request.input(0).shape, &y = request.output(0).shape;
  const int rank = y.rank();
  problem.m = y[rank - 2];
  problem.n = y[rank - 1];
  problem.k = a[rank - (problem.transpose_a ? 2 : 1)];
  problem.batches = y.slice(0, rank - 2).elements();
  const int64_t of_y = alignment_of(request.output(0));
  problem.alignments = {alignment_of(request.input(0)), alignment_of(request.input(1)),
                        problem.adds_c ? alignment_of(request.input(2)) : of_y, of_y};
  return problem;
}

/// Why the library is not asked; "": it is.
std::string why_not_asked(const MatmulProblem& problem) {
  if (problem.operands != DType::f32 && !is_low_precision(problem.operands))
    return fmt::format("needs f32, bf16 or f16, got {}", dtype_name(problem.operands));
  if (problem.k == 0) return "there is nothing to contract";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({problem.m, problem.n, problem.k, problem.batches}) > kMost)
    return "an extent is beyond 32 bits";
  return "";
}

double flops_of(const MatmulProblem& problem) {
  return 2 * static_cast<double>(problem.batches) * static_cast<double>(problem.m) *
         static_cast<double>(problem.n) * static_cast<double>(problem.k);
}

}  // namespace

bool is_library_matmul(const Node& node) {
  return node.op == op::matmul || node.op == op::matmul_add;
}

// c and y may be the same bytes, as the library allows where both lie alike.
std::unique_ptr<CudaKernel> make_library_matmul(const Request& request, LibraryMatmuls& library,
                                                std::string* why_not) {
  const MatmulProblem problem = problem_of(request);
  *why_not = why_not_asked(problem);
  if (!why_not->empty()) return nullptr;
  std::shared_ptr<const LibraryMatmul> matmul = library.find(problem, why_not);
  if (!matmul) return nullptr;
  const size_t inputs = request.node.inputs.size();
  CudaKernel::Description description{
      .text = fmt::format("{} by {}", description_of(request), library.text()),
      .nanoseconds = std::max(memory_nanoseconds(request.card, operand_bytes(request)),
                              flop_nanoseconds(request.card, flops_of(problem) / kShareOfPeak)),
      .scratch_bytes = matmul->workspace_bytes()};
  if (problem.adds_c) description.aliases = {{0, 2}};
  return std::make_unique<CudaKernel>(std::vector<Launch>{}, std::move(description),
                                      LibraryCall{.matmul = std::move(matmul),
                                                  .a = operand(0),
                                                  .b = operand(1),
                                                  .c = inputs > 2 ? operand(2) : null(),
                                                  .y = operand(inputs),
                                                  .workspace = operand(inputs + 1)});
}

}  // namespace fullbore::cuda

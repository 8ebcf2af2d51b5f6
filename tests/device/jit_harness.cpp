#include "jit_harness.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/kernel.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/scalar.h"
#include "guarded_memory.h"

namespace fullbore {
namespace {

double smallest_denormal(DType dtype) {
  return dtype_smallest_normal(dtype) * dtype_epsilon(dtype);
}

bool agrees(DType dtype, double expected, double found, double bound) {
  if (std::isnan(expected)) return std::isnan(found);
  if (expected == found) return true;
  // Where the bound reaches beyond the largest finite value, so may the result.
  if (std::isinf(found))
    return std::signbit(found) == std::signbit(expected) &&
           std::abs(expected) + bound >= dtype_largest(dtype);
  return std::abs(expected - found) <= bound;
}

}  // namespace

std::vector<Literal> run_kernel(const Kernel& kernel, const std::vector<Literal>& inputs,
                                const std::vector<TensorType>& results, int parts) {
  const auto& runnable = dynamic_cast<const CpuKernel&>(kernel);
  std::vector<GuardedMemory> memory;
  std::vector<void*> buffers;
  for (const Literal& input : inputs) memory.emplace_back(input.bytes());
  for (const TensorType& type : results) {
    memory.emplace_back(static_cast<size_t>(type.bytes()));
    std::memset(memory.back().data(), 0xcd, memory.back().bytes());
  }
  memory.emplace_back(static_cast<size_t>(kernel.scratch_bytes(parts)));
  for (const GuardedMemory& each : memory) buffers.push_back(each.data());
  for (int part = 0; part < parts; ++part) {
    const int64_t begin = runnable.items() * part / parts;
    const int64_t end = runnable.items() * (part + 1) / parts;
    if (begin < end) runnable.run(buffers.data(), begin, end, part);
  }
  std::vector<Literal> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back(Literal::from_bytes(results[i], buffers[inputs.size() + i]));
  return outputs;
}

std::string compare_with_oracle(const Node& node, const std::vector<Literal>& expected,
                                const std::vector<std::vector<double>>& magnitudes,
                                const std::vector<Literal>& found, double extra_ulps) {
  for (size_t o = 0; o < expected.size(); ++o) {
    const DType dtype = expected[o].dtype();
    const double accumulator =
        dtype == DType::f64 ? dtype_epsilon(DType::f64) : dtype_epsilon(DType::f32);
    // Low precision is computed in f32 and then rounded once.
    double ulps = node.op->is(Tag::elementwise) ? scalar_op_ulps(node.op->scalar) : 0.5;
    double rounding = ulps * dtype_epsilon(dtype);
    if (is_low_precision(dtype))
      rounding = 0.5 * dtype_epsilon(dtype) + (ulps + 0.5) * dtype_epsilon(DType::f32);
    rounding += extra_ulps * accumulator;
    for (int64_t i = 0; i < expected[o].elements(); ++i) {
      if (!expected[o].floating()) {
        const auto at = static_cast<size_t>(i);
        if (expected[o].integers()[at] != found[o].integers()[at])
          return fmt::format("output {}[{}]: expected {}, found {}", o, i,
                             expected[o].integers()[at], found[o].integers()[at]);
        continue;
      }
      // Processors that round to bf16 by themselves make zeros of denormals.
      const bool flushed = dtype == DType::bf16 && this_processor().avx512_bf16;
      double bound = rounding * std::abs(expected[o].at(i)) +
                     (flushed ? dtype_smallest_normal(dtype) : smallest_denormal(dtype));
      if (o < magnitudes.size() && !magnitudes[o].empty())
        bound += accumulator * magnitudes[o][static_cast<size_t>(i)];
      if (!agrees(dtype, expected[o].at(i), found[o].at(i), bound))
        return fmt::format("output {}[{}]: expected {:.17g}, found {:.17g}, bound {:.3g}", o, i,
                           expected[o].at(i), found[o].at(i), bound);
    }
  }
  return "";
}

}  // namespace fullbore

// Every primitive op has a kernel on CUDA devices, written by hand or generated: composites are decomposed into them, so
// that nothing else need have one.
#include <gtest/gtest.h>

#include <string>

#include "fullbore/device/cuda/codegen/generated_kernel.h"
#include "fullbore/device/cuda/kernel_list.h"
#include "fullbore/ir/op_def.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

// Regions are control flow, identities alias, and constants are bytes of the plan: none of them is launched.
bool is_launched(const OpDef& op) {
  return !op.is(Tag::composite) && !op.is(Tag::region) && !op.is(Tag::identity) &&
         op.name != "constant" && op.name != "fused";
}

/// "listed", "generated", or why there is neither.
std::string kernel_of(const OpDef& op, const Sample& sample, DType dtype) {
  const MaterialisedSample call = materialise(op, sample, dtype, 1);
  const Node& node = call.graph.nodes().front();
  const cuda::CardFacts card;
  const cuda::Request request{call.graph, node, card};
  std::string not_listed, not_generated;
  if (cuda::make_listed_kernel(request, &not_listed)) return "listed";
  if (cuda::make_generated_kernel(request, &not_generated)) return "generated";
  return not_listed + "; generated code: " + not_generated;
}

TEST(CudaKernels, EveryPrimitiveHasOne) {
  int listed = 0, generated = 0;
  for (const OpDef* const op : all_ops()) {
    if (!is_launched(*op)) continue;
    for (const DType dtype : sample_dtypes(*op)) {
      const std::string kernel = kernel_of(*op, op->samples().front(), dtype);
      EXPECT_TRUE(kernel == "listed" || kernel == "generated")
          << op->name << ", " << dtype_name(dtype) << ": " << kernel;
      listed += kernel == "listed" ? 1 : 0;
      generated += kernel == "generated" ? 1 : 0;
    }
  }
  EXPECT_GT(listed, 30);
  EXPECT_GT(generated, 100);
}

}  // namespace
}  // namespace fullbore

// What nodes become: kernels as text, loops and walks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/evaluate.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/cpu/codegen/code_generator.h"
#include "fullbore/device/kernel_ir/loop_placement.h"
#include "fullbore/device/kernel_ir/lower.h"
#include "fullbore/device/kernel_ir/partition.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compare_nodes.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

// The kernels of the builder's last node.
jit::LoweredNode lower_last(const GraphBuilder& builder) {
  std::string why_not;
  auto lowered = jit::lower(builder.graph(), builder.graph().nodes().back(), &why_not);
  EXPECT_TRUE(lowered.has_value()) << why_not;
  return lowered ? std::move(*lowered) : jit::LoweredNode{};
}

std::string text_of_last(const GraphBuilder& builder) {
  std::string result;
  for (const jit::LoweredPiece& piece : lower_last(builder).pieces)
    result += jit::text(piece.kernel);
  return result;
}

TEST(KernelIr, ElementwiseIsOneFlatLoop) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({8, 4, 2}));
  const Tensor y = builder.input("y", Role::batch, f32({8, 4, 2}));
  mul(x, y);
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=0 serial=0 lanes=kept\n"
            "b0 f32\n"
            "b1 f32\n"
            "b2 f32 written\n"
            "%0 = load b0[1] : f32\n"
            "%1 = load b1[1] : f32\n"
            "%2 = mul %0 %1 : f32\n"
            "store b2[1] %2\n");
  const jit::KernelIr kernel = lower_last(builder).pieces[0].kernel;
  EXPECT_EQ(kernel.lanes, 64);
  EXPECT_EQ(jit::make_partition(kernel).items, 1);
}

TEST(KernelIr, CopiesForgetWhatTheyCopy) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({5, 7}));
  transpose(x, {1, 0});
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=1 serial=0 lanes=kept\n"
            "b0 i32\n"
            "b1 i32 written\n"
            "%0 = load b0[* *] : i32\n"
            "store b1[* 1] %0\n");
}

TEST(KernelIr, RowsAndColumnsOfReductions) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({2, 3, 5, 7}));
  reduce_sum(x, {2, 3});
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=1 serial=0 lanes=reduced\n"
            "b0 f32\n"
            "b1 f32 written\n"
            "%0 = load b0[* 1] : f32\n"
            "%1 = reduce add %0 : f32\n"
            "store b1[* .] %1\n");
  reduce_sum(x, {0, 1});
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=0 serial=1 lanes=kept\n"
            "b0 f32\n"
            "b1 f32 written\n"
            "%0 = load b0[* 1] : f32\n"
            "%1 = reduce add %0 : f32\n"
            "store b1[. 1] %1\n");
  reduce_sum(x, {1, 3});
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=2 serial=1 lanes=reduced\n"
            "b0 f32\n"
            "b1 f32 written\n"
            "%0 = load b0[* * * 1] : f32\n"
            "%1 = reduce add %0 : f32\n"
            "store b1[* * . .] %1\n");
}

TEST(KernelIr, PadsAreGuardedLoads) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({3, 5}));
  pad(x, 1, 2, 1);
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=1 serial=0 lanes=kept\n"
            "b0 i32\n"
            "b1 i32 written\n"
            "%0 = load b0[* 1] if [. 1] : i32\n"
            "store b1[* 1] %0\n");
  const jit::KernelIr kernel = lower_last(builder).pieces[0].kernel;
  const jit::Access& access = kernel.instructions[0].access;
  EXPECT_EQ(access.address.offset, -2);
  EXPECT_EQ(access.predicates[0].limit, 5);
}

// Where pads begin and end fits into 32 bits, or the kernel is another one.
TEST(KernelIr, PadsOfLongAxesAreCutAtTheRightPlace) {
  for (const int64_t extent : {int64_t{100}, (int64_t{1} << 31) + 100}) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", Role::batch, f32({}));
    const Tensor padded = pad(broadcast_to(x, {extent}), 0, 1, 3);
    builder.output("end", slice(padded, 0, extent - 20, extent + 4) * 2.0);
    builder.output("begin", slice(padded, 0, 0, 20) * 3.0);
    const Graph graph = builder.take();
    const std::shared_ptr<Device> device = cpu_device(1);
    const std::vector<Literal> got =
        run_on_device(graph, std::vector{Literal::of({DType::f32, {}}, {1})}, device, {});
    for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(got[0].at(i), i < 21 ? 2 : 0) << extent;
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(got[1].at(i), i > 0 ? 3 : 0) << extent;
  }
  GraphBuilder builder;
  pad(builder.input("x", Role::batch, f32({int64_t{1} << 31})), 0, 1, 0);
  EXPECT_TRUE(text_of_last(builder).starts_with("kernel outer=0 serial=0 lanes=kept long\n"));
}

// What is cast after it is loaded is zero outside by itself; what is computed is not.
TEST(KernelIr, PadsOfCastsAreGuardedByTheLoadAlone) {
  for (const bool computed : {false, true}) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", Role::batch, {DType::bf16, {4, 8}});
    GraphBuilder body("fused");
    const Tensor wide = cast(body.input("x0", Role::local, x.type()), DType::f32);
    body.output("y0", pad(computed ? exp(wide) : wide, 1, 2, 1));
    fused(builder, std::span(&x, 1), std::make_shared<const Graph>(body.take()));
    const jit::LoweredNode lowered = lower_last(builder);
    ASSERT_EQ(lowered.pieces.size(), 1U);
    const auto& instructions = lowered.pieces[0].kernel.instructions;
    EXPECT_EQ(
        std::count_if(instructions.begin(), instructions.end(),
                      [](const auto& each) { return each.kind == jit::Instruction::Kind::inside; }),
        computed ? 1 : 0);
  }
}

TEST(KernelIr, ConcatIsOneCopyPerPart) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({3, 5}));
  const Tensor y = builder.input("y", Role::batch, f32({3, 2}));
  concat(std::vector<Tensor>{x, y, x}, 1);
  const jit::LoweredNode lowered = lower_last(builder);
  ASSERT_EQ(lowered.pieces.size(), 3);
  EXPECT_EQ(jit::text(lowered.pieces[0].kernel), jit::text(lowered.pieces[1].kernel));
  EXPECT_EQ(lowered.pieces[1].buffers, (std::vector<int>{1, 3}));
  EXPECT_EQ(lowered.pieces[1].kernel.stores[0].access.address.offset, 5);
}

TEST(KernelIr, WindowsAreSymbols) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({9, 5}));
  const Tensor start = builder.input("start", Role::batch, {DType::i64, {}});
  dynamic_slice(x, start, 0, 4);
  EXPECT_EQ(text_of_last(builder),
            "kernel outer=0 serial=0 lanes=kept\n"
            "b0 i32\n"
            "b1 i64\n"
            "b2 i32 written\n"
            "s0 = b1\n"
            "%0 = load b0[1 *] : i32\n"
            "store b2[1 .] %0\n");
  EXPECT_EQ(lower_last(builder).pieces[0].kernel.symbols[0].limit, 5);
}

jit::KernelIr softmax_kernel(const Shape& shape) {
  GraphBuilder body("softmax");
  const Tensor x = body.input("x", Role::local, f32(shape));
  const Tensor e = exp(x - reduce_max(x, {-1}, true));
  body.output("y", e / reduce_sum(e, {-1}, true));
  GraphBuilder builder;
  const Tensor operand = builder.input("x", Role::batch, f32(shape));
  fused(builder, std::vector<Tensor>{operand}, std::make_shared<const Graph>(body.take()));
  return lower_last(builder).pieces[0].kernel;
}

TEST(KernelIr, SoftmaxIsThreeWalksOverARow) {
  const jit::KernelIr kernel = softmax_kernel({4, 10, 64});
  EXPECT_EQ(jit::text(kernel),
            "kernel outer=1 serial=0 lanes=reduced\n"
            "b0 f32\n"
            "b1 f32 written\n"
            "%0 = load b0[* 1] : f32\n"
            "%1 = reduce maximum %0 : f32\n"
            "%2 = sub %0 %1 : f32\n"
            "%3 = exp %2 : f32\n"
            "%4 = reduce add %3 : f32\n"
            "%5 = div %3 %4 : f32\n"
            "store b1[* 1] %5\n");
  const jit::LoopPlacement placement = jit::place_in_loops(kernel);
  EXPECT_EQ(placement.walks, 3);
  // The exponentials of the second walk are kept for the third, which needs nothing else.
  EXPECT_EQ(placement.slots, 1);
  EXPECT_EQ(placement.slot[3], 0);
  EXPECT_EQ(placement.first_walk[3], 1);
  EXPECT_FALSE(placement.needed[2][2]);
  EXPECT_TRUE(placement.needed[2][3]);
}

// Rows of two axes, for b has one number per head: exponentials of both axes are kept.
jit::KernelIr normalised_kernel(const Shape& shape) {
  GraphBuilder body("normalised");
  const Tensor x = body.input("x", Role::local, f32(shape));
  const Tensor b = body.input("b", Role::local, f32({1, shape[1], 1}));
  const Tensor e = exp(x * broadcast_to(b, shape));
  body.output("y", e / reduce_sum(e, {1, 2}, true));
  GraphBuilder builder;
  const std::vector<Tensor> operands = {builder.input("x", Role::batch, f32(shape)),
                                        builder.input("b", Role::batch, f32({1, shape[1], 1}))};
  fused(builder, operands, std::make_shared<const Graph>(body.take()));
  return lower_last(builder).pieces[0].kernel;
}

TEST(KernelIr, RowsOfSeveralAxesKeepWhatIsCostly) {
  const jit::KernelIr kernel = normalised_kernel({6, 4, 64});
  ASSERT_EQ(kernel.serial, std::vector<int64_t>{4});
  EXPECT_EQ(jit::place_in_loops(kernel).slots, 1);
  EXPECT_EQ(jit::slot_bytes(kernel), 4 * 64 * 8);
  // Not where they would fill a cache.
  EXPECT_EQ(jit::place_in_loops(normalised_kernel({6, 512, 64})).slots, 0);
}

TEST(KernelIr, ItemsDoNotDependOnWorkersAndCoverEverything) {
  for (const Shape& shape : {Shape{1, 7}, Shape{1000, 64}, Shape{3, 100000}, Shape{4096, 1024}}) {
    const jit::KernelIr kernel = softmax_kernel(shape);
    const jit::Partition partition = jit::make_partition(kernel);
    EXPECT_EQ(partition.lane_blocks, 1);  // rows are not cut: sums would depend on it
    EXPECT_GE(partition.items * partition.rows_per_item, shape[0]);
    EXPECT_LT((partition.items - 1) * partition.rows_per_item, shape[0]);
  }
}

// --- the code generator's version ---------------------------------------------------------------

// LLVM IR of the node's kernels for a fixed processor.
void append_code(const Graph& graph, const Node& node, std::string& code, bool bf16 = false) {
  const jit::CodegenTarget target{"x86-64-v4", "", 64, true, bf16};
  const auto lowered = jit::lower(graph, node, nullptr);
  if (!lowered) return;
  for (const jit::LoweredPiece& piece : lowered->pieces)
    code += jit::CodeGenerator(target).llvm_ir(piece.kernel);
}

// Each elementwise op on each dtype that it takes.
void append_elementwise(std::string& code) {
  for (const OpDef* op : all_ops()) {
    if (!op->is(Tag::elementwise) || op->scalar == ScalarOp::cast) continue;
    for (const DType dtype :
         {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8, DType::boolean}) {
      Graph graph;
      std::vector<Value> inputs;
      for (int i = 0; i < scalar_op_arity(op->scalar); ++i) {
        const bool condition = op->scalar == ScalarOp::select && i == 0;
        inputs.push_back(graph.add_input(fmt::format("x{}", i), Role::batch,
                                         {condition ? DType::boolean : dtype, {100}}));
      }
      try {
        const Node node = graph.add_node(*op, inputs, {});
        append_code(graph, node, code);
      } catch (const UsageError&) {
        continue;  // not a dtype of this op
      }
    }
  }
}

void append_casts(std::string& code) {
  for (const DType from : kAllDTypes)
    for (const DType to : kAllDTypes) {
      if (from == to) continue;
      GraphBuilder builder;
      cast(builder.input("x", Role::batch, {from, {100}}), to);
      append_code(builder.graph(), builder.graph().nodes().back(), code);
    }
  for (const DType from : {DType::f32, DType::f64}) {
    GraphBuilder builder;
    cast(builder.input("x", Role::batch, {from, {100}}), DType::bf16);
    append_code(builder.graph(), builder.graph().nodes().back(), code, true);
  }
}

void append_structures(std::string& code) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, f32({4, 6, 8}));
  const Tensor start = builder.input("start", Role::batch, {DType::i64, {}});
  reduce_sum(x, {2});
  reduce_max(x, {0});
  reduce_prod(x, {0, 2});
  transpose(x, {2, 1, 0});
  pad(x, 2, 1, 1, 1);
  pad(x, 0, 1, -1);
  cumsum(x, 2);
  cumsum(x, 0, true, true);
  argmax(x, 1);
  dynamic_slice(x, start, 2, 3);
  iota(builder, f32({4, 1000000}), 1);
  for (const Node& node : builder.graph().nodes()) append_code(builder.graph(), node, code);
  static const jit::CodegenTarget target{"x86-64-v4", "", 64, true};
  code += jit::CodeGenerator(target).llvm_ir(softmax_kernel({4, 64}));
  code += jit::CodeGenerator(target).llvm_ir(normalised_kernel({4, 2, 64}));
}

// Masked loads and stores are single instructions of this processor. Taken apart, each of them is a
// chain of sixteen tests and branches, and the nine of this kernel alone fill more than 4 KiB.
TEST(KernelIr, MaskedAccessesStayWhole) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "instructions of x86-64";
#endif
  GraphBuilder builder;
  std::vector<Value> inputs;
  Graph body;
  for (int i = 0; i < 8; ++i)
    inputs.push_back(body.add_input(fmt::format("x{}", i), Role::local, f32({100})));
  Value total = inputs[0];
  for (int i = 1; i < 8; ++i)
    total = body.add_node(*find_op("add"), {total, inputs[static_cast<size_t>(i)]}, {}).outputs[0];
  body.add_output("y", total);
  std::vector<Tensor> operands;
  for (int i = 0; i < 8; ++i)
    operands.push_back(builder.input(fmt::format("x{}", i), Role::batch, f32({100})));
  fused(builder, operands, std::make_shared<const Graph>(body));
  const jit::LoweredNode lowered = lower_last(builder);
  ASSERT_EQ(lowered.pieces.size(), 1U);
  const jit::CodegenTarget target{"x86-64-v4", "", 64, true};
  EXPECT_LT(jit::CodeGenerator(target).compile(lowered.pieces[0].kernel).value().size(), 4096U);
}

// A cache entry must not outlive a change of the code generator. If this fails, code is generated
// that differs from what users have on disk: count kCodegenVersion up and put the new hash here.
TEST(KernelIr, CodegenVersionChangesWithTheCode) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the hash is of code for x86-64";
#endif
  if (jit::llvm_version() != 19) GTEST_SKIP() << "other versions of LLVM print IR differently";
  std::string code;
  append_elementwise(code);
  append_casts(code);
  append_structures(code);
  EXPECT_EQ(jit::kCodegenVersion, 16);
  EXPECT_EQ(hash_hex(hash_text(code)), "97733d30ce018270");
}

}  // namespace
}  // namespace fullbore

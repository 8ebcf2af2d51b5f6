// What matmuls by cuBLASLt are: each against its reference.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fullbore/device/cuda/cublaslt/matmuls.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/runtime/compare_nodes.h"
#include "tests/cuda/fake_card.h"
#include "tests/support/samples.h"

namespace fullbore::cuda {
namespace {

const CompileOptions kByLibrary{.cublaslt = true};

class CublasLtProducts : public FakeCard {};

// Every sample: layouts, batches, extents of one and odd ones, and what is added.
TEST_F(CublasLtProducts, MakesWhatTheOracleDoes) {
  const auto device = open();
  for (const char* const name : {"matmul", "matmul_add"}) {
    const OpDef& op = get_op(name);
    for (const Sample& sample : op.samples())
      for (const DType dtype : sample_dtypes(op)) {
        if (dtype == DType::f64) continue;  // no dtype of the library's
        const MaterialisedSample call = materialise(op, sample, dtype, 1);
        const int64_t before = fake().lt_products;
        EXPECT_EQ(first_difference(call.graph, call.inputs, device, kByLibrary), "")
            << name << ": " << sample.why << ", " << dtype_name(dtype);
        const Graph& graph = call.graph;
        const bool is_asked = graph.type(graph.nodes().front().inputs[0]).elements() > 0 &&
                              graph.type(graph.nodes().front().outputs[0]).elements() > 0;
        EXPECT_EQ(fake().lt_products - before, is_asked ? 1 : 0)
            << name << ": " << sample.why << ", " << dtype_name(dtype);
      }
  }
}

// Where the results of narrow operands are f32, as those of weight gradients that a loop adds up.
TEST_F(CublasLtProducts, MakesWideSumsOfNarrowOperands) {
  const auto device = open();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const SampleInput a = SampleInput::normal({dtype, {2, 13, 9}});
    const SampleInput b = SampleInput::normal({dtype, {2, 13, 11}});
    const SampleInput c = SampleInput::normal({DType::f32, {2, 9, 11}});
    const Attributes layout{{"transpose_a", true}, {"transpose_b", false}};
    Attributes wide = layout;
    wide.set("wide", true);
    const std::pair<const char*, Sample> calls[] = {
        {"matmul", {.why = "wide", .inputs = {a, b}, .attributes = wide}},
        {"matmul_add", {.why = "wide", .inputs = {a, b, c}, .attributes = layout}}};
    for (const auto& [name, sample] : calls) {
      const MaterialisedSample call = materialise(get_op(name), sample, DType::f32, 1);
      EXPECT_EQ(first_difference(call.graph, call.inputs, device, kByLibrary), "")
          << name << " of " << dtype_name(dtype);
    }
  }
  EXPECT_EQ(fake().lt_products, 4);
}

// A step's graph is made while another program is compiled: the library searches for nothing while a stream is captured.
TEST_F(CublasLtProducts, AreSearchedForWhileOthersAreCaptured) {
  constexpr int64_t kOfEither = 300;
  const auto context = std::make_shared<Context>(load_driver(), 0);
  std::string why_not;
  LibraryMatmuls* const library = context->library_matmuls(&why_not);
  ASSERT_NE(library, nullptr) << why_not;
  const std::shared_ptr<const LibraryMatmul> known =
      library->find({.m = 8, .n = 8, .k = 8}, &why_not);
  ASSERT_NE(known, nullptr) << why_not;
  const CardMemory memory(context, 4096 + known->workspace_bytes());
  const Address at{memory.get()};
  std::atomic<bool> is_done = false;
  std::atomic<int64_t> captures = 0;
  std::thread capturing([&] {
    for (; !is_done; ++captures) {
      const GraphHandle graph = known->capture({at, at + 256, {}, at + 512, at + 4096}, "known");
      context->enter().destroy_graph(graph);
    }
  });
  while (captures == 0) std::this_thread::yield();
  int64_t refused = 0;
  for (int64_t i = 1; i <= kOfEither || captures < kOfEither; ++i) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(50));  // until the other one captures again
    if (!library->find({.m = 8, .n = 8, .k = 8 + i}, &why_not)) ++refused;
  }
  is_done = true;
  capturing.join();
  EXPECT_EQ(refused, 0) << why_not;
}

}  // namespace
}  // namespace fullbore::cuda

// Matmuls by cuBLASLt: where they lie in a step's graph, and what becomes of them where the library is of no use.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/device/cuda/cublaslt/interface.h"
#include "fullbore/device/cuda/driver/result_code.h"
#include "fullbore/device/device_error.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/prepare.h"
#include "fullbore/runtime/program.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CompileOptions kByLibrary{.cublaslt = true};

constexpr int64_t kRows = 5, kWide = 40, kNarrow = 24;

class CublasLtOnCard : public FakeCard {
 protected:
  struct Made {
    std::vector<float> y;
    std::vector<std::string> notices;
    int64_t products = 0, graph_launches = 0;
  };

  /// y = (x w) w^T: two kinds of product, the second behind the first.
  static Graph products() {
    GraphBuilder builder("products");
    const Tensor x = builder.input("x", Role::batch, {DType::f32, {kRows, kWide}});
    const Tensor w = builder.input("w", Role::batch, {DType::f32, {kWide, kNarrow}});
    builder.output("y", matmul(matmul(x, w), w, {.transpose_b = true}));
    return builder.take();
  }

  static Made made_by(const CompileOptions& options) {
    State state({}, open());
    CompileReport report;
    Program program = Program::compile(products(), state, options, &report);
    alignas(64) float x[kRows * kWide];
    alignas(64) float w[kWide * kNarrow];
    for (int i = 0; i < kRows * kWide; ++i) x[i] = std::sin(0.7F * static_cast<float>(i));
    for (int i = 0; i < kWide * kNarrow; ++i) w[i] = std::cos(0.3F * static_cast<float>(i));
    const FakeCuda before = fake();
    const void* const batch[] = {x, w};
    program.run(batch);
    const auto y = program.read_result<float>(program.output("y"));
    return {.y = {y.begin(), y.end()},
            .notices = report.notices,
            .products = fake().lt_products - before.lt_products,
            .graph_launches = fake().graph_launches - before.graph_launches};
  }

  static void expect_near(const Made& found, const Made& expected, const std::string& what) {
    ASSERT_EQ(found.y.size(), expected.y.size());
    // Two sums of 40 terms and 24, each below 40: roundings of f32.
    for (size_t i = 0; i < found.y.size(); ++i)
      EXPECT_NEAR(found.y[i], expected.y[i], 64 * 40 * 24 * 0x1p-24) << what << ", " << i;
  }

  static void fail(const char* call, int64_t at, int64_t code) {
    std::strncpy(fake().fail_call, call, sizeof fake().fail_call - 1);
    fake().fail_at = at;
    fake().fail_code = code;
    std::memset(fake().failed, 0, sizeof fake().failed);
  }
  static int64_t code_of(const std::string& call) {
    return call.starts_with("cublas") ? int64_t{kLtInternalError} : int64_t{kInvalidValue};
  }
};

TEST_F(CublasLtOnCard, RoundsToTf32WhereThatIsAskedFor) {
  CompileOptions both = kByLibrary;
  both.tf32 = true;
  const Made fp32 = made_by(kByLibrary), tf32 = made_by(both);
  EXPECT_EQ(tf32.products, 2);
  EXPECT_NE(tf32.y, fp32.y);
  for (size_t i = 0; i < fp32.y.size(); ++i)
    EXPECT_NEAR(tf32.y[i], fp32.y[i], 4 * 40 * 24 * 0x1p-11) << i;
}

TEST_F(CublasLtOnCard, IsNotLookedForWhereNobodyAsks) {
  const Variable nowhere("FULLBORE_CUBLASLT", "/nowhere/libcublasLt.so.13");
  const Made own = made_by({});
  EXPECT_THAT(own.notices, IsEmpty());
  EXPECT_EQ(own.products, 0);
  EXPECT_EQ(fake().lt_searches, 0);
}

// One launch of one graph, whatever the order of what no edge orders.
TEST_F(CublasLtOnCard, IsPartOfTheStepsGraph) {
  const Made own = made_by({});
  const Made first = made_by(kByLibrary);
  EXPECT_THAT(first.notices, IsEmpty());
  EXPECT_EQ(first.products, 2);
  EXPECT_EQ(first.graph_launches, own.graph_launches);
  expect_near(first, own, "library");
  EXPECT_NE(first.y, own.y) << "the library sums in an order of its own";
  for (const uint64_t seed : {1, 2, 3}) {
    fake().seed = seed;
    EXPECT_EQ(made_by(kByLibrary).y, first.y) << seed;
  }
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  const Made alone = made_by(kByLibrary);
  EXPECT_EQ(alone.graph_launches, 0);
  EXPECT_EQ(alone.products, 2);
  EXPECT_EQ(alone.y, first.y);
}

// The tests above would see it.
TEST_F(CublasLtOnCard, IsMissedWhereItIsLost) {
  const Made whole = made_by(kByLibrary);
  std::strncpy(fake().lose_nodes, "cublaslt", sizeof fake().lose_nodes - 1);
  EXPECT_NE(made_by(kByLibrary).y, whole.y);
  EXPECT_GT(fake().lost_in_graphs, 0);
  reset();
  std::strncpy(fake().lose_edges, "graph>graph", sizeof fake().lose_edges - 1);
  EXPECT_NE(made_by(kByLibrary).y, whole.y);
  EXPECT_EQ(fake().lost_in_graphs, 1);
}

TEST_F(CublasLtOnCard, HasItsWorkspaceInThePlan) {
  GraphBuilder builder("product");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kRows, kWide}});
  builder.output("y", matmul(x, x, {.transpose_b = true}));
  const Graph graph = builder.take();
  const auto peak = [&](int64_t workspace) {
    fake().lt_workspace = workspace;
    const auto device = open();
    const PreparedProgram prepared = prepare_program(graph, *device, kByLibrary);
    EXPECT_THAT(plan_text(prepared.plan), HasSubstr("by cuBLASLt 13.0.2"));
    return prepared.plan.peak_bytes();
  };
  const int64_t without = peak(0);
  EXPECT_EQ(peak(1 << 20), without + (1 << 20));
  EXPECT_EQ(peak(32 << 20), without + (32 << 20));
  // More than it may have it does without.
  EXPECT_EQ(peak(33 << 20), without);
}

// Of the library as a whole: bits are those of the card's own kernels, and one line says why.
TEST_F(CublasLtOnCard, LeavesAllToOwnKernelsWhereItIsOfNoUse) {
  const Made own = made_by({});
  const auto expect_line = [&](const std::string& why) {
    const Made made = made_by(kByLibrary);
    EXPECT_EQ(made.y, own.y) << why;
    EXPECT_EQ(made.products, 0) << why;
    EXPECT_THAT(made.notices,
                ElementsAre(AllOf(HasSubstr("engine.cublaslt: the card's own kernels make all"),
                                  HasSubstr(why))));
  };
  {
    const Variable nowhere("FULLBORE_CUBLASLT", "/nowhere/libcublasLt.so.13");
    expect_line("/nowhere/libcublasLt.so.13: cannot open");
  }
  {
    const Variable other("FULLBORE_CUBLASLT", "libm.so.6");
    expect_line("libm.so.6 has no function cublasLtGetVersion");
  }
  fake().lt_version = 111103;
  expect_line("is cuBLASLt 11.11.3; 12 and 13 are known");
  fake().lt_version = 140000;
  expect_line("is cuBLASLt 14.0.0");
  fake().lt_version = 120205;
  fail("cublasLtCreate", 1, kLtNotInitialized);
  expect_line("cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (1)");
  EXPECT_THAT(made_by(kByLibrary).notices, IsEmpty()) << "it works again";
}

// The program that copies weights is compiled last, and has no matmul.
TEST_F(CublasLtOnCard, IsMissedByProgramsThatCopyWeightsToo) {
  const Variable nowhere("FULLBORE_CUBLASLT", "/nowhere/libcublasLt.so.13");
  GraphBuilder builder("linear");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kRows, kWide}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {kWide, kNarrow}});
  builder.output("y", matmul(x, w));
  CompileOptions bf16 = kByLibrary;
  bf16.precision = DType::bf16;
  const auto device = open();
  const PreparedProgram prepared = prepare_program(builder.graph(), *device, bf16);
  ASSERT_TRUE(prepared.copies.has_value());
  EXPECT_THAT(prepared.report.notices, ElementsAre(HasSubstr("own kernels make all matmuls")));
}

// Of a kind of product: the other one is the library's.
TEST_F(CublasLtOnCard, LeavesAProductToOwnKernelsWhereACallFails) {
  const Made own = made_by({});
  for (const char* const call :
       {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute",
        "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul", "cuStreamBeginCapture_v2",
        "cuStreamEndCapture", "cuGraphGetNodes"}) {
    fail(call, 1, code_of(call));
    const Made made = made_by(kByLibrary);
    EXPECT_STREQ(fake().failed, call);
    expect_near(made, own, call);
    EXPECT_EQ(made.products, 1) << call;
    EXPECT_THAT(
        made.notices,
        ElementsAre(AllOf(HasSubstr("engine.cublaslt: the card's own kernels make 1 kind of "
                                    "matmul, matmul f32[5,40], f32[40,24]: "),
                          HasSubstr(call))));
  }
  fail("cublasLtMatmulAlgoGetHeuristic", 2, kLtNotSupported);
  EXPECT_THAT(made_by(kByLibrary).notices,
              ElementsAre(AllOf(HasSubstr("1 kind of matmul, matmul f32[5,24], f32[40,24]: "),
                                HasSubstr("CUBLAS_STATUS_NOT_SUPPORTED (15)"))));
}

TEST_F(CublasLtOnCard, LeavesAllKindsToOwnKernelsByOneLine) {
  const Made own = made_by({});
  fake().lt_smallest = 1 << 20;
  const Made made = made_by(kByLibrary);
  EXPECT_EQ(made.y, own.y);
  EXPECT_THAT(made.notices,
              ElementsAre(HasSubstr("2 kinds of matmul, the first matmul f32[5,24]")));
  reset();
  fake().lt_is_silent = 1;
  const Made silent = made_by(kByLibrary);
  EXPECT_EQ(silent.y, own.y);
  EXPECT_THAT(silent.notices, ElementsAre(HasSubstr("it told its stream nothing")));
}

// Batches have attributes of their own.
TEST_F(CublasLtOnCard, LeavesABatchToOwnKernelsWhereItsLayoutFails) {
  GraphBuilder builder("batch");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, kRows, kRows}});
  builder.output("y", matmul(x, x));
  fail("cublasLtMatrixLayoutSetAttribute", 2, kLtInvalidValue);
  const auto device = open();
  EXPECT_THAT(prepare_program(builder.graph(), *device, kByLibrary).report.notices,
              ElementsAre(HasSubstr("cublasLtMatrixLayoutSetAttribute")));
}

// What was tried and then fails is the card's failure, with a way out.
TEST_F(CublasLtOnCard, NamesTheCallThatFailsAfterItsTrial) {
  const auto failure = [&](const char* call, int64_t at, int64_t code) {
    fail(call, at, code);
    return message_of<DeviceError>([&] { made_by(kByLibrary); });
  };
  EXPECT_THAT(
      failure("cublasLtMatmul", 3, kLtExecutionFailed),
      AllOf(HasSubstr("cublasLtMatmul of matmul f32[5,24]"),
            HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED (13)"), HasSubstr("engine.cublaslt=false")));
  EXPECT_THAT(failure("cuGraphAddChildGraphNode", 1, kInvalidValue),
              HasSubstr("cuGraphAddChildGraphNode"));
  EXPECT_THAT(failure("cuStreamEndCapture", 3, kUnknown), HasSubstr("cuStreamEndCapture"));
  fail("cublasLtMatmul", 4, kLtAllocationFailed);
  EXPECT_THAT(message_of<MemoryError>([&] { made_by(kByLibrary); }),
              HasSubstr("CUBLAS_STATUS_ALLOC_FAILED (3)"));
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  EXPECT_THAT(failure("cublasLtMatmul", 3, kLtInternalError),
              HasSubstr("cublasLtMatmul of matmul f32[5,24]"));
}

TEST_F(CublasLtOnCard, IsForCardsThatAreAtHand) {
  const Graph graph = products();
  const auto notices = [&](const char* device) {
    return prepare_program(graph, *open_device(device), kByLibrary).report.notices;
  };
  EXPECT_THAT(notices("card:H200"), ElementsAre(HasSubstr("the card is not at hand")));
  EXPECT_THAT(notices("cpu"), ElementsAre(AllOf(HasSubstr("it is for NVIDIA's cards"),
                                                HasSubstr("the cpu device"))));
  EXPECT_EQ(fake().lt_searches, 0);
}

TEST_F(CublasLtOnCard, IsListedAsALibraryOfCards) {
  EXPECT_TRUE(device_has_library("cuda", "cuBLASLt"));
  EXPECT_FALSE(device_has_library("cpu", "cuBLASLt"));
  EXPECT_FALSE(device_has_library("card:H200", "cuBLASLt"));
  fail("cublasLtCreate", 1, kLtNotInitialized);
  EXPECT_FALSE(device_has_library("cuda", "cuBLASLt"));
  fake().cards = 0;
  EXPECT_FALSE(device_has_library("cuda", "cuBLASLt"));
}

}  // namespace
}  // namespace fullbore::cuda

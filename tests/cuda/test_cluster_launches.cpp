// Kernels of clusters, and tensor maps as parameters, on the fake driver: what it makes of them, and what it refuses.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "fullbore/device/cuda/driver/context.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

constexpr int kInvalidClusterSize = 912;  // CUDA_ERROR_INVALID_CLUSTER_SIZE

// Of two blocks the first has a row of 64 brought to both, and each stores its last number, and its rank in the 16 bits above.
constexpr const char* kPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry pass_on(.param .align 64 .b8 pass_on_param_0[128], .param .u64 to)
.explicitcluster
.maxntid 32, 1, 1
.reqnctapercluster 2, 1, 1
{
  .reg .pred %p<5>;
  .reg .b16 %h<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 1024 .b8 row[1024];
  .shared .align 8 .b8 bar[8];
  mov.b64 %rd1, pass_on_param_0;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, row;
  mov.u32 %r4, bar;
  setp.ne.u32 %p1, %r1, 0;
  setp.ne.u32 %p2, %r2, 0;
  or.pred %p3, %p1, %p2;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [%r4], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
READY:
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  mov.u32 %r5, 0;
  mov.u16 %h1, 3;
  @%p3 bra BROUGHT;
  cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd1, {%r5, %r5, %r5}], [%r4], %h1;
BROUGHT:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], 0;
  @!%p4 bra BROUGHT;
  @%p1 bra END;
  ld.shared.u16 %r6, [%r3+126];
  shl.b32 %r7, %r2, 16;
  or.b32 %r6, %r6, %r7;
  mov.u32 %r7, %ctaid.x;
  mul.wide.u32 %rd3, %r7, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r6;
END:
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  ret;
}
)";

class ClusterLaunches : public FakeCard {
 protected:
  void SetUp() override {
    FakeCard::SetUp();
    context_ = std::make_shared<Context>(load_driver(), 0);
    row_ = std::make_unique<CardMemory>(context_, 128);
    to_ = std::make_unique<CardMemory>(context_, 16);
    const auto module = std::make_shared<Module>(Module{.name = "cluster", .ptx = kPtx});
    function_ = context_->function(module, "pass_on", 0);
    const Driver& driver = context_->enter();
    std::array<uint16_t, 64> row{};
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint16_t>(1000 + i);
    driver.copy_in(row_->get(), row.data(), sizeof row, context_->main());
    driver.wait_for_stream(context_->main());
    address_ = to_->get();
  }
  void TearDown() override {
    row_.reset();
    to_.reset();
    context_.reset();
    FakeCard::TearDown();
  }

  int encode(DevicePointer address, std::array<uint64_t, 3> extents = {64, 1, 1}) {
    const std::array<uint64_t, 2> strides = {128, 128};
    const std::array<uint32_t, 3> box = {64, 1, 1}, each = {1, 1, 1};
    return context_->enter().encode_map.attempt(map_.data(), 1, 3, address, extents.data(),
                                                strides.data(), box.data(), each.data(), 0, 3, 3,
                                                0);
  }
  KernelNode node(unsigned grid) {
    return {.function = function_,
            .grid_x = grid,
            .block_x = 32,
            .arguments = arguments_.data(),
            .context = context_->handle()};
  }
  int launch(unsigned grid) {
    return context_->enter().launch.attempt(function_, grid, 1, 1, 32, 1, 1, 0, context_->main(),
                                            arguments_.data(), nullptr);
  }
  std::array<uint32_t, 4> found() {
    std::array<uint32_t, 4> words{};
    const Driver& driver = context_->enter();
    driver.copy_out(words.data(), to_->get(), sizeof words, context_->main());
    driver.wait_for_stream(context_->main());
    return words;
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<CardMemory> row_, to_;
  FunctionHandle function_ = nullptr;
  alignas(64) std::array<std::byte, 128> map_{};
  DevicePointer address_ = 0;
  std::array<void*, 2> arguments_ = {map_.data(), &address_};
};

constexpr std::array<uint32_t, 4> kExpected = {1063, 1063 | 1 << 16, 1063, 1063 | 1 << 16};

TEST_F(ClusterLaunches, PassBoxesOn) {
  ASSERT_EQ(encode(row_->get()), kSuccess);
  ASSERT_EQ(launch(4), kSuccess);
  EXPECT_EQ(found(), kExpected);
  EXPECT_STREQ(fake().fault, "");
}

TEST_F(ClusterLaunches, AreOfWholeClusters) {
  ASSERT_EQ(encode(row_->get()), kSuccess);
  for (const unsigned grid : {1U, 3U}) EXPECT_EQ(launch(grid), kInvalidClusterSize);
  GraphHandle graph = nullptr;
  GraphExecHandle exec = nullptr;
  const Driver& driver = context_->enter();
  driver.make_graph(&graph, 0);
  NodeHandle made = nullptr;
  KernelNode odd = node(3), whole = node(4);
  EXPECT_EQ(driver.add_kernel.attempt(&made, graph, nullptr, 0, &odd), kInvalidClusterSize);
  ASSERT_EQ(driver.add_kernel.attempt(&made, graph, nullptr, 0, &whole), kSuccess);
  driver.instantiate_graph(&exec, graph, 0);
  EXPECT_EQ(driver.set_kernel.attempt(exec, made, &odd), kInvalidClusterSize);
  driver.launch_graph(exec, context_->main());
  EXPECT_EQ(found(), kExpected);
  driver.destroy_graph_exec(exec);
  driver.destroy_graph(graph);
}

TEST_F(ClusterLaunches, MapsThatTheDriverRefusesAreNone) {
  EXPECT_EQ(encode(row_->get() + 8), kInvalidValue);
  EXPECT_EQ(encode(row_->get(), {64, 0, 1}), kInvalidValue);
  EXPECT_EQ(map_, (std::array<std::byte, 128>{}));
  // The kernel has to fail, and the card with it.
  ASSERT_EQ(launch(2), kSuccess);
  EXPECT_EQ(context_->enter().wait_for_stream.attempt(context_->main()), kLaunchFailed);
  EXPECT_NE(std::string(fake().fault).find("there is no tensor map"), std::string::npos)
      << fake().fault;
  restart();
}

}  // namespace
}  // namespace fullbore::cuda

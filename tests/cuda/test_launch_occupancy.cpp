// How many threads a multiprocessor holds, and what keeps it from more: figures of NVIDIA's occupancy calculator.
#include "fullbore/device/cuda/driver/launch_occupancy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/cuda/executor/compiled_node.h"
#include "fullbore/device/device_error.h"
#include "fullbore/ops/ops.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

// A kernel that does nothing, with as many registers and bytes of shared memory as it says.
Launch launch_with(int registers, int shared_bytes, unsigned threads, int64_t dynamic_bytes = 0) {
  const std::string variable =
      shared_bytes == 0 ? "" : fmt::format(".shared .align 16 .b8 own[{}];\n", shared_bytes);
  const auto module = std::make_shared<const Module>(Module{
      .name = "idle",
      .ptx = fmt::format(".version 7.0\n.target sm_80\n.address_size 64\n{}"
                         ".visible .entry idle() .maxntid {}, 1, 1 {{\n  .reg .b32 %r<{}>;\n  "
                         "ret;\n}}\n",
                         variable, threads, registers)});
  return {.module = module,
          .entry = "idle",
          .block = {threads, 1, 1},
          .dynamic_shared_bytes = dynamic_bytes};
}

class LaunchOccupancy : public FakeCard {
 protected:
  static Occupancy of(const Launch& launch) {
    Context context(load_driver(), 0);
    return launch_occupancy(context, launch);
  }
  static void expect(const Launch& launch, int blocks, double share, OccupancyLimit limit) {
    const Occupancy found = of(launch);
    EXPECT_EQ(found.blocks, blocks);
    EXPECT_DOUBLE_EQ(found.share, share);
    EXPECT_EQ(found.limit, limit);
  }
};

TEST_F(LaunchOccupancy, IsWholeWhereNothingIsShort) {
  expect(launch_with(32, 0, 256), 8, 1, OccupancyLimit::none);
  expect(launch_with(32, 1 << 10, 1024), 2, 1, OccupancyLimit::none);
}

TEST_F(LaunchOccupancy, RegistersAreGivenToWholeWarps) {
  expect(launch_with(64, 0, 256), 4, 0.5, OccupancyLimit::registers);
  expect(launch_with(40, 0, 256), 6, 0.75, OccupancyLimit::registers);
  expect(launch_with(33, 0, 256), 6, 0.75, OccupancyLimit::registers);
  expect(launch_with(168, 0, 384), 1, 0.1875, OccupancyLimit::registers);
  expect(launch_with(255, 0, 128), 2, 0.125, OccupancyLimit::registers);
}

TEST_F(LaunchOccupancy, SharedMemoryCountsWithWhatTheLaunchAdds) {
  expect(launch_with(8, 36 << 10, 128), 6, 0.375, OccupancyLimit::shared_memory);
  expect(launch_with(8, 36 << 10, 128, 20 << 10), 4, 0.25, OccupancyLimit::shared_memory);
  expect(launch_with(8, 0, 256, 200 << 10), 1, 0.125, OccupancyLimit::shared_memory);
  // 1,024 bytes of each block are the driver's: four of 57 KiB would fit without.
  expect(launch_with(8, 0, 256, 57 << 10), 3, 0.375, OccupancyLimit::shared_memory);
  const Occupancy found = of(launch_with(8, 36 << 10, 128, 20 << 10));
  EXPECT_EQ(found.shared_bytes, 56 << 10);
  EXPECT_EQ(found.registers, 8);
  EXPECT_EQ(found.block_threads, 128);
}

TEST_F(LaunchOccupancy, BlocksAreHeldWhole) {
  expect(launch_with(8, 0, 768), 2, 0.75, OccupancyLimit::block_size);
  expect(launch_with(8, 0, 32), 32, 0.5, OccupancyLimit::block_size);
}

TEST_F(LaunchOccupancy, DiffersByCard) {
  fake().capability = 89;
  fake().shared_bytes = 99 << 10;
  expect(launch_with(32, 0, 256), 6, 1, OccupancyLimit::none);
  expect(launch_with(32, 0, 1024), 1, 1024.0 / 1536, OccupancyLimit::block_size);
  expect(launch_with(8, 0, 256, 48 << 10), 2, 1.0 / 3, OccupancyLimit::shared_memory);
  fake().capability = 86;
  expect(launch_with(8, 0, 32), 16, 1.0 / 3, OccupancyLimit::block_size);
}

TEST_F(LaunchOccupancy, OfSeveralLaunchesTheLowestIsTheKernels) {
  const auto device = open();
  auto& source = dynamic_cast<OccupancySource&>(*device);
  GraphBuilder builder("step");
  builder.output("y", tanh(builder.input("x", Role::batch, {DType::f32, {4}})));
  const Graph graph = builder.take();
  const Node& node = graph.nodes().front();
  const auto made_of = [&](std::vector<Launch> launches) {
    return CompiledNode(
        std::make_unique<CudaKernel>(std::move(launches), CudaKernel::Description{}), graph, node);
  };
  const CompiledNode kernel =
      made_of({launch_with(32, 0, 256), launch_with(64, 0, 256), launch_with(40, 0, 256)});
  const auto found = source.occupancy(kernel);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->registers, 64);
  EXPECT_EQ(found->share, 0.5);
  EXPECT_FALSE(source.occupancy(made_of({}))) << "nothing is launched";
}

TEST_F(LaunchOccupancy, SaysWhichCallFailed) {
  std::strcpy(fake().fail_call, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  fake().fail_at = 1;
  EXPECT_NE(message_of<DeviceError>([] {
              of(launch_with(8, 0, 32));
            }).find("cuOccupancyMaxActiveBlocksPerMultiprocessor"),
            std::string::npos);
}

}  // namespace
}  // namespace fullbore::cuda

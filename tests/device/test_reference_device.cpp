// The reference device runs whole programs, and agrees with the interpreter up to the roundings of what it stores.
#include <gtest/gtest.h>

#include "fullbore/device/interpret.h"
#include "fullbore/runtime/compare_nodes.h"
#include "tests/support/device.h"
#include "tests/support/random_graph.h"

namespace fullbore {
namespace {

// Node by node, each on operands that the device itself made: the bounds of a kernel hold for the double-precision
// reference that is rounded once.
TEST(ReferenceDevice, AgreesWithTheInterpreterNodeByNode) {
  const std::shared_ptr<Device> device = open_device("reference");
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const RandomGraph random = random_graph(seed);
    EXPECT_EQ(first_difference(random.graph, random.inputs, device, {}), "") << seed;
  }
}

}  // namespace
}  // namespace fullbore

// Launches of one code that need not follow one another become one, with the same results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "fullbore/device/cuda/executor/merged_code.h"
#include "fullbore/device/cuda/executor/merged_nodes.h"
#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

struct RandomGraph {
  std::vector<std::vector<int>> follows;
  std::vector<MergeableNode> nodes;

  explicit RandomGraph(unsigned seed) {
    std::mt19937 random(seed);
    follows.resize(1 + random() % 120);
    for (size_t i = 1; i < follows.size(); ++i) {
      std::set<int> before;
      for (unsigned edge = random() % 4; edge > 0; --edge)
        before.insert(static_cast<int>(random() % i));
      follows[i].assign(before.begin(), before.end());
    }
    for (const std::vector<int>& each : follows) {
      const int kind = static_cast<int>(random() % 5) - 1;
      nodes.push_back({.kind = kind, .most = kind < 0 ? 1 : 2 + kind, .follows = each});
    }
  }
};

/// Nodes of the longest chain, or 0 if a node comes before one that it follows. `became`: the number that each has now.
int longest_chain(const RandomGraph& graph, const std::vector<int>& became, size_t count) {
  std::vector<int> length(count, 1);
  std::vector<std::vector<int>> members(count);
  for (size_t i = 0; i < became.size(); ++i)
    members[static_cast<size_t>(became[i])].push_back(static_cast<int>(i));
  for (size_t group = 0; group < count; ++group)
    for (const int node : members[group])
      for (const int before : graph.follows[static_cast<size_t>(node)]) {
        const auto of = static_cast<size_t>(became[static_cast<size_t>(before)]);
        if (of >= group) return 0;
        length[group] = std::max(length[group], length[of] + 1);
      }
  return *std::ranges::max_element(length);
}

TEST(MergedNodes, KeepOrderKindsAndTheLongestChain) {
  size_t before = 0, after = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const RandomGraph graph(seed);
    const auto merged = merge_nodes(graph.nodes);
    std::vector<int> became(graph.nodes.size(), -1), alone(graph.nodes.size());
    for (size_t i = 0; i < alone.size(); ++i) alone[i] = static_cast<int>(i);
    for (size_t group = 0; group < merged.size(); ++group)
      for (const int node : merged[group]) {
        EXPECT_EQ(became[static_cast<size_t>(node)], -1) << "seed " << seed;
        became[static_cast<size_t>(node)] = static_cast<int>(group);
        const MergeableNode& first = graph.nodes[static_cast<size_t>(merged[group].front())];
        EXPECT_EQ(graph.nodes[static_cast<size_t>(node)].kind, first.kind);
        EXPECT_LE(static_cast<int>(merged[group].size()), first.most);
      }
    ASSERT_EQ(std::ranges::count(became, -1), 0) << "seed " << seed;
    ASSERT_EQ(longest_chain(graph, became, merged.size()),
              longest_chain(graph, alone, alone.size()))
        << "seed " << seed;
    before += graph.nodes.size();
    after += merged.size();
  }
  EXPECT_LT(after, before * 3 / 4);
}

class MergedLaunches : public FakeCard {
 protected:
  static constexpr int64_t kBytes = MixingKernel::kBytes;
  static constexpr uint64_t kCount = 5;

  /// Launches that a run takes which makes value i + 1 of values i and `second(i)`, and whether they are right.
  template <class Second>
  static int64_t launches_of(const Second& second) {
    const auto device = open();
    const auto memory = device->allocate(2 * static_cast<int64_t>(kCount + 1) * kBytes);
    const auto at = [&](uint64_t value) {
      return memory->address() + static_cast<int64_t>(value) * kBytes;
    };
    constexpr size_t kWords = MixingKernel::kElements;
    std::vector<std::vector<uint64_t>> wanted(2 * (kCount + 1), std::vector<uint64_t>(kWords));
    for (uint64_t value = 0; value < wanted.size(); ++value) {
      for (uint64_t i = 0; i < kWords; ++i) wanted[value][i] = 100 * value + i;
      device->write(at(value), std::as_bytes(std::span(wanted[value])));
    }
    const MixingKernel kernel;
    const auto recorder = device->record();
    for (uint64_t i = 0; i < kCount; ++i) {
      const uint64_t to = kCount + 1 + i;
      recorder->launch(
          static_cast<int>(i), *kernel.node,
          std::vector<LaunchOperand>{{.base = at(i)}, {.base = at(second(i))}, {.base = at(to)}},
          true);
      MixingKernel::run(wanted[i].data(), wanted[second(i)].data(), wanted[to].data());
    }
    const auto program = recorder->finish();
    const int64_t before = fake().launches;
    program->run();
    program->wait();
    for (uint64_t value = 0; value < wanted.size(); ++value) {
      std::vector<uint64_t> found(kWords);
      device->read(at(value), std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, wanted[value]) << "value " << value;
    }
    return fake().launches - before;
  }
};

TEST_F(MergedLaunches, AreOneWhereNoneNeedsAnother) {
  EXPECT_EQ(launches_of([](uint64_t i) { return i + 1; }), 1);
}

TEST_F(MergedLaunches, AreApartWhereEachNeedsTheOneBefore) {
  EXPECT_EQ(launches_of([](uint64_t i) { return i == 0 ? 0 : kCount + i; }),
            static_cast<int64_t>(kCount));
}

TEST(MergedCode, IsNoneWhereParametersAreUsedInAnotherWay) {
  Launch launch{.module = std::make_shared<const Module>(
                    Module{"some",
                           ".version 7.2\n.visible .entry some(\n\t.param .u64 some_param_0\n)\n"
                           "{\n\tld.param.u64 \t%rd1, [some_param_0];\n\tret;\n\n}\n"}),
                .entry = "some",
                .arguments = {{.operand = 0}}};
  ASSERT_TRUE(merged_code(launch).has_value());
  EXPECT_EQ(merged_code(launch)->record_bytes, 16);
  launch.grid.z = 2;
  EXPECT_FALSE(merged_code(launch).has_value());
  launch.grid.z = 1;
  launch.arguments[0] = {.bytes = std::vector<std::byte>(2400)};
  EXPECT_FALSE(merged_code(launch).has_value());
  launch.arguments[0] = {.operand = 0};
  launch.module = std::make_shared<const Module>(
      Module{"some",
             ".version 7.2\n.visible .entry some(\n\t.param .u64 some_param_0\n)\n"
             "{\n\tcvta.param.u64 \t%rd1, some_param_0;\n\tret;\n\n}\n"});
  EXPECT_FALSE(merged_code(launch).has_value());
}

}  // namespace
}  // namespace fullbore::cuda

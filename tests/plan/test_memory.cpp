#include <algorithm>

#include <gtest/gtest.h>

#include "fullbore/base/philox.h"
#include "fullbore/plan/memory.h"

namespace fullbore {
namespace {

constexpr int64_t kAlignment = 64;

std::vector<Lifetime> random_blocks(uint64_t seed, int count) {
  PhiloxStream draws(seed);
  std::vector<Lifetime> blocks;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(draws.below(50));
    blocks.push_back({static_cast<int64_t>(draws.below(4) == 0 ? 0 : draws.below(5000)), first,
                      first + static_cast<int>(draws.below(12))});
  }
  return blocks;
}

int64_t overlapping(const std::vector<Lifetime>& blocks, const Placement& placement) {
  int64_t pairs = 0;
  for (size_t a = 0; a < blocks.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      if (blocks[a].last < blocks[b].first || blocks[b].last < blocks[a].first) continue;
      if (blocks[a].bytes == 0 || blocks[b].bytes == 0) continue;
      const bool apart = placement.offsets[a] + blocks[a].bytes <= placement.offsets[b] ||
                         placement.offsets[b] + blocks[b].bytes <= placement.offsets[a];
      pairs += apart ? 0 : 1;
    }
  return pairs;
}

// Brute force over all pairs, and the total against the least that any placement could reach.
TEST(Placement, NoTwoLiveBlocksOverlap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Lifetime> blocks = random_blocks(seed, 60);
    const Placement placement = place_by_size(blocks, kAlignment);
    EXPECT_EQ(overlapping(blocks, placement), 0) << "seed " << seed;
    int64_t floor = 0;
    for (int time = 0; time < 70; ++time) {
      int64_t live = 0;
      for (const Lifetime& block : blocks)
        if (block.first <= time && time <= block.last)
          live += aligned_bytes(block.bytes, kAlignment);
      floor = std::max(floor, live);
    }
    EXPECT_GE(placement.total_bytes, floor);
    EXPECT_LE(placement.total_bytes, place_apart(blocks, kAlignment).total_bytes);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(placement.offsets[i] % kAlignment, 0);
      EXPECT_LE(placement.offsets[i] + blocks[i].bytes, placement.total_bytes);
    }
  }
}

// What is alive at the end and at the beginning again is apart from what lives at either.
TEST(Placement, BlocksThatLiveOnAtTheBeginningAreApart) {
  int64_t together = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<Lifetime> blocks = random_blocks(seed, 60);
    for (size_t i = 0; i < blocks.size(); i += 5) {
      blocks[i].first = 45;
      blocks[i].last = 65;
      blocks[i].again = static_cast<int>(i % 3) * 6;
    }
    const Placement placement = place_by_size(blocks, kAlignment);
    EXPECT_EQ(overlapping(blocks, placement), 0) << "seed " << seed;
    for (size_t i = 0; i < blocks.size(); i += 5)
      for (size_t other = 0; other < blocks.size(); ++other) {
        if (other % 5 == 0 || blocks[other].first > blocks[i].again) continue;
        if (blocks[i].bytes == 0 || blocks[other].bytes == 0) continue;
        ++together;
        EXPECT_TRUE(placement.offsets[i] + blocks[i].bytes <= placement.offsets[other] ||
                    placement.offsets[other] + blocks[other].bytes <= placement.offsets[i])
            << "seed " << seed;
      }
  }
  EXPECT_GT(together, 1000);
}

TEST(Placement, LateReuseLeavesSmallBlocksAloneForSomeLaunches) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Lifetime> blocks = random_blocks(seed, 60);
    constexpr int64_t kSmall = 1 << 20;
    const Placement placement = place_with_late_reuse(blocks, kAlignment, kSmall);
    std::vector<Lifetime> longer = blocks;
    for (Lifetime& each : longer) each.last += 16;
    EXPECT_EQ(overlapping(longer, placement), 0) << "seed " << seed;
  }
}

TEST(Placement, LateReuseIsGivenUpWhereItTakesTooMuch) {
  std::vector<Lifetime> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back({int64_t{32} << 20, i, i + 1});
  const int64_t tight = place_by_size(blocks, kAlignment).total_bytes;
  EXPECT_EQ(place_with_late_reuse(blocks, kAlignment, int64_t{64} << 20).total_bytes, tight);
  EXPECT_EQ(place_with_late_reuse(blocks, kAlignment, 1).total_bytes, tight);
}

TEST(Placement, TheCheckFindsAnOverlap) {
  std::vector<Lifetime> blocks = {{100, 0, 3}, {100, 2, 5}};
  EXPECT_EQ(overlapping(blocks, place_by_size(blocks, kAlignment)), 0);
  EXPECT_EQ(overlapping(blocks, Placement{{0, 64}, 256}), 1);
}

TEST(Placement, DeadBlocksShareBytes) {
  const std::vector<Lifetime> blocks = {{1000, 0, 1}, {1000, 2, 3}, {1000, 4, 5}};
  EXPECT_EQ(place_by_size(blocks, kAlignment).total_bytes, aligned_bytes(1000, kAlignment));
  EXPECT_EQ(place_apart(blocks, kAlignment).total_bytes, 3 * aligned_bytes(1000, kAlignment));
}

}  // namespace
}  // namespace fullbore

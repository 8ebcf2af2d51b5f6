// Nodes of a graph follow those whose bytes they touch, if one of both writes, and no others: against all pairs of random
// programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "fullbore/device/cuda/executor/memory_hazards.h"

namespace fullbore::cuda {
namespace {

using Accesses = std::vector<MemoryAccess>;

bool conflict(const Accesses& a, const Accesses& b) {
  for (const MemoryAccess& x : a)
    for (const MemoryAccess& y : b)
      if ((x.is_written || y.is_written) && std::max(x.begin, y.begin) < std::min(x.end, y.end))
        return true;
  return false;
}

/// comes_behind[b][a]: does b follow a by whichever way?
using Order = std::vector<std::vector<bool>>;

Order all_ways(const std::vector<std::vector<int>>& follows) {
  Order order(follows.size(), std::vector<bool>(follows.size()));
  for (size_t b = 0; b < follows.size(); ++b)
    for (const int a : follows[b]) {
      order[b][static_cast<size_t>(a)] = true;
      for (size_t c = 0; c < follows.size(); ++c)
        if (order[static_cast<size_t>(a)][c]) order[b][c] = true;
    }
  return order;
}

Accesses random_accesses(std::mt19937& random, uint64_t bytes) {
  Accesses accesses(1 + random() % 4);
  for (MemoryAccess& each : accesses) {
    each.begin = random() % bytes;
    each.end = each.begin + random() % 12;
    each.is_written = random() % 3 == 0;
  }
  return accesses;
}

TEST(MemoryHazards, OfJoinedAccessesAreTheSame) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Accesses all;
    for (int i = 0; i < 6; ++i) {
      const Accesses more = random_accesses(random, 80);
      all.insert(all.end(), more.begin(), more.end());
    }
    const Accesses pieces = joined(all);
    EXPECT_LE(pieces.size(), all.size());
    for (uint64_t byte = 0; byte < 100; ++byte)
      for (const bool is_written : {false, true}) {
        const auto has_byte = [&](const MemoryAccess& each) {
          return each.is_written == is_written && each.begin <= byte && byte < each.end;
        };
        EXPECT_EQ(std::ranges::count_if(pieces, has_byte), std::ranges::any_of(all, has_byte))
            << "seed " << seed << ", byte " << byte;
      }
  }
}

TEST(MemoryHazards, FollowWhatTheyConflictWithAndNothingElse) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const uint64_t bytes = 20 + random() % 200;
    MemoryHazards hazards;
    std::vector<Accesses> program;
    std::vector<std::vector<int>> made, wanted;
    for (int node = 0; node < 90; ++node) {
      program.push_back(random_accesses(random, bytes));
      made.push_back(hazards.add(program.back()));
      wanted.emplace_back();
      for (int before = 0; before < node; ++before)
        if (conflict(program[static_cast<size_t>(before)], program.back()))
          wanted.back().push_back(before);
    }
    ASSERT_EQ(all_ways(made), all_ways(wanted)) << "seed " << seed;
  }
}

TEST(MemoryHazards, LeaveOutWhatAnotherFollowsAlready) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    MemoryHazards hazards;
    std::vector<std::vector<int>> made;
    for (int node = 0; node < 90; ++node) made.push_back(hazards.add(random_accesses(random, 100)));
    const Order order = all_ways(made);
    for (const std::vector<int>& follows : made)
      for (const int a : follows)
        for (const int b : follows)
          ASSERT_FALSE(order[static_cast<size_t>(b)][static_cast<size_t>(a)]) << "seed " << seed;
  }
}

TEST(MemoryHazards, ReadersAreSideBySide) {
  MemoryHazards hazards;
  const Accesses write{{0, 100, true}}, read{{40, 60, false}};
  EXPECT_EQ(hazards.add(write), std::vector<int>());
  EXPECT_EQ(hazards.add(read), std::vector<int>{0});
  EXPECT_EQ(hazards.add(read), std::vector<int>{0});
  EXPECT_EQ(hazards.add(write), (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace fullbore::cuda

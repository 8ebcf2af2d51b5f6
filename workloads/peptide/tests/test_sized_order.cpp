#include "workloads/peptide/sized_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

namespace fullbore::peptide {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;

TEST(PeakSizes, AreQuarters) {
  EXPECT_THAT(peak_sizes(100, true), ElementsAre(25, 50, 75, 100));
  EXPECT_THAT(peak_sizes(5, true), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(peak_sizes(2, true), ElementsAre(1, 2));
  EXPECT_THAT(peak_sizes(100, false), ElementsAre(100));
  const std::vector<int64_t> sizes = peak_sizes(100, true);
  EXPECT_EQ(peak_size_of(sizes, 0), 0U);
  EXPECT_EQ(peak_size_of(sizes, 25), 0U);
  EXPECT_EQ(peak_size_of(sizes, 26), 1U);
  EXPECT_EQ(peak_size_of(sizes, 100), 3U);
  EXPECT_EQ(peak_size_of(sizes, 1000), 3U);
}

// Half of the items are of size 0, a quarter of size 1, and so on.
std::vector<uint8_t> some_sizes(size_t count) {
  std::vector<uint8_t> sizes(count);
  for (size_t i = 0; i < count; ++i)
    sizes[i] = static_cast<uint8_t>(std::min(std::countr_one(i), 3));
  return sizes;
}

TEST(SizedOrder, EachWindowOfAnEpochHasEveryItemOnce) {
  const std::vector<uint8_t> sizes = some_sizes(480);
  const SizedOrder order(sizes, 16, true, 1);
  EXPECT_EQ(order.batches(), 30U);
  std::vector<uint64_t> epochs[2];
  int narrow = 0;
  for (uint64_t position = 0; position < 60; ++position) {
    const SizedOrder::Batch batch = order.batch(position);
    ASSERT_EQ(batch.items.size(), 16U);
    EXPECT_EQ(order.size(position), batch.size);
    size_t largest = 0;
    for (const uint64_t item : batch.items) largest = std::max<size_t>(largest, sizes[item]);
    EXPECT_EQ(largest, batch.size);
    narrow += batch.size == 0;
    auto& epoch = epochs[position / 30];
    epoch.insert(epoch.end(), batch.items.begin(), batch.items.end());
  }
  EXPECT_EQ(narrow, 2 * 15) << "half of the items need no more";
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::ranges::sort(epoch);
    for (uint64_t item = 0; item < 480; ++item) ASSERT_EQ(epoch[item], item);
  }
}

// Windows end where they end: no item is lost, and none comes twice before all others came once.
TEST(SizedOrder, ItemsComeAsOftenAsOneAnother) {
  for (const size_t count : {1U, 5U, 16U, 37U, 1000U}) {
    const SizedOrder order(some_sizes(count), 16, true, 2);
    std::map<uint64_t, int> met;
    const uint64_t positions = 3 * 62;  // whole windows, which are of 1, 2 or 62 batches
    for (uint64_t position = 0; position < positions; ++position)
      for (const uint64_t item : order.batch(position).items) ++met[item];
    ASSERT_EQ(met.size(), count);
    const auto mean = static_cast<int>(16 * positions / count);
    for (const auto& [item, times] : met) {
      EXPECT_THAT(times, Ge(mean)) << item << " of " << count;
      EXPECT_THAT(times, Le(mean + 1)) << item << " of " << count;
    }
  }
}

TEST(SizedOrder, IsAFunctionOfThePositionAndTheSeed) {
  const std::vector<uint8_t> sizes = some_sizes(300);
  const SizedOrder forwards(sizes, 8, true, 3);
  const SizedOrder backwards(sizes, 8, true, 3);
  const SizedOrder other(sizes, 8, true, 4);
  std::vector<SizedOrder::Batch> batches(200);
  for (uint64_t position = 200; position-- > 0;) batches[position] = backwards.batch(position);
  bool differs = false;
  size_t turns = 0;
  for (uint64_t position = 0; position < 200; ++position) {
    const SizedOrder::Batch batch = forwards.batch(position);
    EXPECT_EQ(batch.items, batches[position].items);
    EXPECT_EQ(batch.size, batches[position].size);
    differs = differs || other.batch(position).items != batch.items;
    turns += position > 0 && batch.size < batches[position - 1].size;
  }
  EXPECT_TRUE(differs);
  EXPECT_GT(turns, 20U) << "narrow batches and wide ones take turns";
}

TEST(SizedOrder, UnshuffledIsBySize) {
  const SizedOrder order({1, 0, 1, 0, 0}, 2, false, 0);
  constexpr uint64_t kNobody = SizedOrder::kNobody;
  EXPECT_EQ(order.batches(), 3U);
  EXPECT_THAT(order.batch(0).items, ElementsAre(1, 3));
  EXPECT_THAT(order.batch(1).items, ElementsAre(4, 0));
  EXPECT_THAT(order.batch(2).items, ElementsAre(2, kNobody));
  EXPECT_EQ(order.size(0), 0U);
  EXPECT_EQ(order.size(1), 1U);
  EXPECT_EQ(order.size(2), 1U);
  EXPECT_THAT(order.batch(4).items, ElementsAre(4, 0));
}

}  // namespace
}  // namespace fullbore::peptide

#include "fullbore/base/tensor_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace fullbore {
namespace {

TEST(TensorMemory, IsZeroAlignedAndWritableToItsEnd) {
  constexpr int64_t kMebi = int64_t{1} << 20;
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{65}, 3 * kMebi, 4 * kMebi,
                              5 * kMebi + 7, 97 * kMebi + 64}) {
    const TensorMemory memory = allocate_tensor_memory(bytes);
    ASSERT_TRUE(memory);
    const auto address = reinterpret_cast<uintptr_t>(memory.get());
    EXPECT_EQ(address % (bytes >= 4 * kMebi ? 2 * kMebi : 64), 0U) << bytes;
    EXPECT_TRUE(std::all_of(memory.get(), memory.get() + bytes, [](char c) { return c == 0; }));
    std::fill_n(memory.get(), bytes, '\x5a');
  }
}

TEST(TensorMemory, TellsWhetherItIsZero) {
  constexpr int64_t kBytes = int64_t{5} << 20;
  const TensorMemory memory = allocate_tensor_memory(kBytes);
  EXPECT_TRUE(is_zero(memory.get(), kBytes));
  for (const int64_t at : {int64_t{0}, int64_t{1}, kBytes / 2, kBytes - 1}) {
    memory.get()[at] = 1;
    EXPECT_FALSE(is_zero(memory.get(), kBytes)) << at;
    meet_page(memory.get() + at);
    EXPECT_EQ(memory.get()[at], 1);
    memory.get()[at] = 0;
  }
  EXPECT_TRUE(is_zero(memory.get(), 0));
  EXPECT_TRUE(is_zero(memory.get(), 1));
}

// Pages of the machine that some bytes of each block of 2 MiB take, where those blocks may be no large pages.
TEST(TensorMemory, PiecesFarApartTakeSmallPages) {
  constexpr int64_t kMebi = int64_t{1} << 20, kBytes = 32 * kMebi;
  const auto page_bytes = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  const TensorMemory memory = allocate_tensor_memory(kBytes);
  memory.get()[7] = 1;
  choose_pages(memory.get() + 2 * kMebi, kBytes - 2 * kMebi, false);
  EXPECT_EQ(memory.get()[7], 1) << "contents stay";
  for (int64_t at = 3 * kMebi; at < kBytes; at += 2 * kMebi) memory.get()[at] = 1;
  std::vector<unsigned char> resident(static_cast<size_t>(kBytes / page_bytes));
  ASSERT_EQ(::mincore(memory.get(), kBytes, resident.data()), 0);
  EXPECT_EQ(std::count_if(resident.begin() + 2 * kMebi / page_bytes, resident.end(),
                          [](unsigned char page) { return (page & 1) != 0; }),
            15);
  choose_pages(memory.get(), kBytes, true);
  for (int64_t at = 3 * kMebi; at < kBytes; at += 2 * kMebi) EXPECT_EQ(memory.get()[at], 1);
  choose_pages(memory.get(), 0, false);
}

// From any place in a line to any other; what is beside it stays.
TEST(TensorMemory, CopiesPastCachesByteForByte) {
  constexpr int64_t kBytes = 1000;
  std::vector<char> from(kBytes);
  std::iota(from.begin(), from.end(), '\0');
  for (const int64_t bytes : {0, 1, 15, 63, 64, 65, 128, 200, 777}) {
    for (int64_t begin = 0; begin < 70; ++begin) {
      const int64_t target = 67 * begin % 71;
      std::vector<char> to(kBytes, '#');
      copy_past_caches(to.data() + target, from.data() + begin, bytes);
      std::vector<char> expected(kBytes, '#');
      std::copy_n(from.begin() + begin, bytes, expected.begin() + target);
      ASSERT_TRUE(to == expected) << bytes << " bytes from " << begin << " to " << target;
    }
  }
}

}  // namespace
}  // namespace fullbore

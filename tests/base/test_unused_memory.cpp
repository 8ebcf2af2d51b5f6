#include "fullbore/base/unused_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fullbore/base/text.h"

namespace fullbore {
namespace {

// KiB resident of what is mapped where `address` lies.
int64_t resident_around(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= wanted && wanted < end;
    else if (inside && line.starts_with("Rss:"))
      return std::atoll(line.c_str() + 4);
  }
  return -1;
}

TEST(UnusedMemory, PagesOfALibraryAreLetGoAndComeBack) {
  const auto code = reinterpret_cast<const void*>(&bytes_text);
  const std::string before = bytes_text(3.5e6);
  const int64_t resident = resident_around(code);
  ASSERT_GT(resident, 0);
  release_library_pages(code);
  const int64_t left = resident_around(code);
  EXPECT_GE(left, 0);
  EXPECT_LT(left, resident);
  EXPECT_EQ(bytes_text(3.5e6), before);
}

TEST(UnusedMemory, WhatALibraryHasWrittenStays) {
  // The environment is memory that the C library writes to, by pointers among its own data.
  ASSERT_EQ(setenv("FULLBORE_TEST_KEPT", "kept", 1), 0);
  release_library_pages(reinterpret_cast<const void*>(&setenv));
  EXPECT_STREQ(std::getenv("FULLBORE_TEST_KEPT"), "kept");
  unsetenv("FULLBORE_TEST_KEPT");
}

TEST(UnusedMemory, OfNoLibraryIsNone) {
  std::vector<char> memory(1 << 20, 'x');
  release_library_pages(memory.data());
  EXPECT_EQ(memory[memory.size() / 2], 'x');
}

TEST(UnusedMemory, IsGivenBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  constexpr int64_t kFreed = int64_t{16} * 1024;  // KiB, half of the blocks
  // Small blocks come from the heap; the one that lives keeps its end where it is.
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 4000; ++i) blocks.emplace_back(8192, 'x');
  const std::vector<char> last(8192, 'y');
  const void* const middle = blocks[2000].data();
  const int64_t full = resident_around(middle);
  ASSERT_GT(full, kFreed);
  blocks.clear();
  release_free_memory();
  const int64_t left = resident_around(middle);
  EXPECT_GE(left, 0);
  EXPECT_LT(left, full - kFreed);
  EXPECT_EQ(last[0], 'y');
}

}  // namespace
}  // namespace fullbore

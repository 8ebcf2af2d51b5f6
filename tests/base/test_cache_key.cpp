// The key of caches: random, one for all processes, of its user alone.
#include "fullbore/base/cache_key.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/private_folder.h"
#include "tests/base/environment_variable.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class CacheKeyTest : public ::testing::Test {
 protected:
  testing::ScratchFolder folder_;
};

TEST_F(CacheKeyTest, IsMadeOnceAndReadAgain) {
  const SipKey key = read_or_make_cache_key(folder_ / "a/b").take_or_throw();
  EXPECT_EQ(read_or_make_cache_key(folder_ / "a/b").take_or_throw(), key);
  EXPECT_NE(read_or_make_cache_key(folder_ / "a/c").take_or_throw(), key);
  EXPECT_NE(key, SipKey{});
}

TEST_F(CacheKeyTest, MakersAtOnceAgree) {
  for (int round = 0; round < 20; ++round) {
    const std::string place = folder_ / std::to_string(round);
    std::vector<SipKey> keys(8);
    std::vector<std::thread> makers;
    for (SipKey& key : keys)
      makers.emplace_back([&key, &place] { key = read_or_make_cache_key(place).take_or_throw(); });
    for (std::thread& maker : makers) maker.join();
    EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 1U);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place), {}), 1);
  }
}

TEST_F(CacheKeyTest, WhatAPowerCutHasTornIsMadeAnew) {
  read_or_make_cache_key(folder_ / "k").take_or_throw();
  for (const size_t size : {0, 7, 17}) {
    std::filesystem::remove(folder_ / "k/cache.key");
    folder_.put("k/cache.key", std::string(size, 'x'));
    ASSERT_EQ(::chmod((folder_ / "k/cache.key").c_str(), 0600), 0);
    read_or_make_cache_key(folder_ / "k").take_or_throw();
    EXPECT_EQ(std::filesystem::file_size(folder_ / "k/cache.key"), 16U);
  }
}

TEST_F(CacheKeyTest, APipeInItsPlaceIsNotWaitedFor) {
  std::filesystem::create_directories(folder_ / "k");
  ASSERT_EQ(::mkfifo((folder_ / "k/cache.key").c_str(), 0600), 0);
  EXPECT_THAT(read_or_make_cache_key(folder_ / "k").error(), HasSubstr("is no regular file"));
}

TEST_F(CacheKeyTest, RelativePathsOfTheEnvironmentCountAsUnset) {
  const testing::EnvironmentVariable state("XDG_STATE_HOME", "here");
  const testing::EnvironmentVariable home("HOME", "/home/u");
  EXPECT_EQ(state_directory(), "/home/u/.local/state/fullbore");
  const testing::EnvironmentVariable absolute("XDG_STATE_HOME", "/s");
  EXPECT_EQ(state_directory(), "/s/fullbore");
  const testing::EnvironmentVariable none("XDG_STATE_HOME", nullptr);
  const testing::EnvironmentVariable homeless("HOME", "");
  EXPECT_EQ(state_directory(), "");
}

}  // namespace
}  // namespace fullbore

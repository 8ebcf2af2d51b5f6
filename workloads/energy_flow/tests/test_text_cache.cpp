#include "workloads/energy_flow/text_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fullbore::energy_flow {
namespace {

// A15.
TEST(TextCache, TheOneAskedForLongestAgoMakesRoom) {
  LruCache<std::string> cache(3);
  for (const std::string text : {"a", "b", "c"}) cache.put(text_key(text), text);
  ASSERT_NE(cache.get(text_key("a")), nullptr);
  cache.put(text_key("d"), "d");
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_EQ(cache.get(text_key("b")), nullptr);
  for (const std::string text : {"a", "c", "d"}) {
    ASSERT_NE(cache.get(text_key(text)), nullptr) << text;
    EXPECT_EQ(*cache.get(text_key(text)), text);
  }
  EXPECT_EQ(cache.misses(), 1);
  EXPECT_EQ(cache.hits(), 7);
}

TEST(TextCache, OtherWeightsEmptyIt) {
  LruCache<int> cache(3);
  cache.set_version(1);
  cache.put(text_key("a"), 1);
  cache.set_version(1);
  EXPECT_NE(cache.get(text_key("a")), nullptr);
  cache.set_version(2);
  EXPECT_EQ(cache.get(text_key("a")), nullptr);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(TextCache, AnotherValueReplacesTheOneThatIsThere) {
  LruCache<int> cache(2);
  cache.put(text_key("a"), 1);
  cache.put(text_key("b"), 2);
  cache.put(text_key("a"), 3);
  cache.put(text_key("c"), 4);
  EXPECT_EQ(*cache.get(text_key("a")), 3);
  EXPECT_EQ(cache.get(text_key("b")), nullptr);
  LruCache<int> none(0);
  none.put(text_key("a"), 1);
  EXPECT_EQ(none.size(), 0U);
}

TEST(TextCache, SurfacesAreKnownByAllTheirValues) {
  const std::vector<float> surface = {0.25F, -0.5F, 0.75F};
  const std::vector<float> turned = {-0.5F, 0.25F, 0.75F};
  const std::vector<float> near = {0.25001F, -0.5F, 0.75F};
  EXPECT_NE(surface_key(surface), surface_key(turned));
  EXPECT_EQ(surface_key(surface), surface_key(near));
  EXPECT_NE(text_key("a b"), text_key("b a"));
}

}  // namespace
}  // namespace fullbore::energy_flow

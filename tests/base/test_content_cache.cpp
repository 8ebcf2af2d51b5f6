// Entries are found by their whole key or not at all; damage, foreign files and too much of them harm nobody.
#include "fullbore/base/content_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "fullbore/base/build_id.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

class ContentCacheTest : public ::testing::Test {
 protected:
  static void make_older(const std::string& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  testing::ScratchFolder folder_;
};

TEST_F(ContentCacheTest, EntriesHoldTheirKeys) {
  const ContentCache cache(folder_ / "not/yet/there");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.put("key", "content");
  EXPECT_EQ(cache.find("key"), "content");
  cache.put("key", "another");
  EXPECT_EQ(cache.find("key"), "another");
  cache.put("", "");
  EXPECT_EQ(cache.find(""), "");
  // A file under another key's name, as after a collision of hashes.
  fs::copy_file(cache.path("key"), cache.path("other"));
  EXPECT_EQ(cache.find("other"), std::nullopt);
}

TEST_F(ContentCacheTest, EveryFlippedBitAndEveryCutIsFoundOut) {
  const ContentCache cache(folder_.path());
  cache.put("the key", "the content");
  const std::string path = cache.path("the key");
  const std::string intact = read_file(path).take_or_throw();
  const auto found_after = [&](const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
    return cache.find("the key").has_value();
  };
  for (size_t at = 0; at < intact.size(); ++at) {
    EXPECT_FALSE(found_after(intact.substr(0, at))) << "cut at " << at;
    std::string flipped = intact;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    EXPECT_FALSE(found_after(flipped)) << "bit flipped at " << at;
  }
  EXPECT_FALSE(found_after(intact + "x"));
  EXPECT_TRUE(found_after(intact));
  found_after("torn");
  cache.put("the key", "the content");
  EXPECT_EQ(read_file(path).take_or_throw(), intact);
}

// By whoever can write there but has not the key.
TEST_F(ContentCacheTest, WhatAnotherKeySignedIsNotFound) {
  const ContentCache ours(folder_ / "cache", 1 << 20, SipKey{1});
  const ContentCache theirs(folder_ / "cache", 1 << 20, SipKey{2});
  theirs.put("key", "code of theirs");
  EXPECT_EQ(theirs.find("key"), "code of theirs");
  EXPECT_EQ(ours.find("key"), std::nullopt);
  ours.put("key", "code of ours");
  EXPECT_EQ(ours.find("key"), "code of ours");
}

// As versions before wrote them: a hash without a key, which anybody can make.
TEST_F(ContentCacheTest, AHashWithoutAKeyIsNotTaken) {
  const ContentCache cache(folder_ / "cache");
  cache.put("key", "content");
  const uint64_t header[] = {3, 7, hash_text("content", hash_text("key"))};
  std::string entry = "fullbore object 1\n";
  entry.append(reinterpret_cast<const char*>(header), sizeof header);
  std::ofstream(cache.path("key"), std::ios::binary) << entry + "keycontent";
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

// The tag covers where the key ends and the content begins.
TEST_F(ContentCacheTest, KeyAndContentDoNotRunIntoEachOther) {
  const ContentCache cache(folder_ / "cache");
  cache.put("key", "content");
  std::string entry = read_file(cache.path("key")).take_or_throw();
  entry[18] = 4;
  entry[26] = 6;
  std::ofstream(cache.path("keyc"), std::ios::binary) << entry;
  ASSERT_EQ(::chmod(cache.path("keyc").c_str(), 0600), 0);
  EXPECT_EQ(cache.find("keyc"), std::nullopt);
}

TEST_F(ContentCacheTest, AFolderThatOthersCanWriteToIsNotUsed) {
  const ContentCache cache(folder_ / "cache");
  cache.put("key", "content");
  ASSERT_TRUE(cache.find("key"));
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0777), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.put("other", "content");
  EXPECT_FALSE(fs::exists(cache.path("other")));
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0700), 0);
  EXPECT_TRUE(cache.find("key"));
  fs::rename(folder_ / "cache", folder_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", folder_ / "cache");
  EXPECT_EQ(cache.find("key"), std::nullopt) << "a link";
}

TEST_F(ContentCacheTest, AnEntryThatIsALinkOrOpenToOthersIsNotTaken) {
  const ContentCache cache(folder_ / "cache");
  cache.put("key", "content");
  ASSERT_EQ(::chmod(cache.path("key").c_str(), 0602), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  ASSERT_EQ(::chmod(cache.path("key").c_str(), 0600), 0);
  ASSERT_TRUE(cache.find("key"));
  fs::rename(cache.path("key"), folder_ / "entry");
  fs::create_symlink(folder_ / "entry", cache.path("key"));
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.put("key", "again");
  EXPECT_EQ(cache.find("key"), "again");
  EXPECT_NE(read_file(folder_ / "entry").take_or_throw().find("content"), std::string::npos)
      << "written through a link";
}

TEST_F(ContentCacheTest, SaysWhyAnEntryIsNotTakenOrCannotBePut) {
  const ContentCache cache(folder_ / "cache");
  const auto found = [&](const char* key) {
    std::string problem;
    cache.find(key, &problem);
    return problem;
  };
  const auto put = [&](const char* key) {
    std::string problem;
    cache.put(key, "content", &problem);
    return problem;
  };
  EXPECT_EQ(found("key"), "") << "that there is none is no problem";
  EXPECT_EQ(put("key"), "");
  EXPECT_EQ(found("key"), "");
  std::ofstream(cache.path("key"), std::ios::binary) << "torn";
  EXPECT_EQ(found("key"),
            cache.path("key") + " is damaged, or was not written with this user's key");
  ASSERT_EQ(::chmod(cache.path("key").c_str(), 0602), 0);
  EXPECT_TRUE(found("key").ends_with(" has mode 0602: it is open to others"));
  fs::remove(cache.path("key"));
  fs::create_directory(cache.path("key"));
  EXPECT_TRUE(found("key").ends_with(" is no regular file"));
  EXPECT_TRUE(put("key").starts_with("cannot write to " + (folder_ / "cache: ")));
  ASSERT_EQ(::chmod((folder_ / "cache").c_str(), 0777), 0);
  EXPECT_NE(found("other").find("others can write to it"), std::string::npos);
  EXPECT_NE(put("other").find("others can write to it"), std::string::npos);
}

TEST_F(ContentCacheTest, WithoutAFolderNothingIsKept) {
  const ContentCache none("");
  none.put("key", "content");
  EXPECT_EQ(none.find("key"), std::nullopt);
  const ContentCache unwritable(folder_.put("file", "no folder") + "/below");
  unwritable.put("key", "content");
  EXPECT_EQ(unwritable.find("key"), std::nullopt);
}

TEST_F(ContentCacheTest, WhatWasNotWantedForLongestGoesFirst) {
  constexpr uint64_t kMost = 100'000;
  const std::string content(10'000, 'x');
  {
    const ContentCache cache(folder_.path(), kMost);
    for (int i = 0; i < 8; ++i) {
      cache.put("old " + std::to_string(i), content);
      make_older(cache.path("old " + std::to_string(i)), 100 - i);
    }
    EXPECT_TRUE(cache.find("old 0"));  // wanted again
  }
  const std::string foreign = folder_.put("notes.txt", std::string(200'000, 'n'));
  const std::string abandoned = folder_.put("0123.fbo.77.1", "half an ent");
  const std::string under_way = folder_.put("4567.fbo.78.1", "half an ent");
  make_older(foreign, 1000);
  make_older(abandoned, 2);
  const ContentCache cache(folder_.path(), kMost);
  for (int i = 0; i < 20; ++i) {
    cache.put("new " + std::to_string(i), content);
    uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(folder_.path()))
      if (file.path().extension() == ".fbo") bytes += file.file_size();
    EXPECT_LE(bytes, kMost + 1000) << i;
    if (i == 0) {
      EXPECT_TRUE(cache.find("old 0"));
      EXPECT_FALSE(cache.find("old 1"));
    }
  }
  EXPECT_TRUE(cache.find("new 19"));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_TRUE(fs::exists(under_way));
  EXPECT_FALSE(fs::exists(abandoned));
}

TEST(BuildId, IsOneOfTheProcess) {
  EXPECT_EQ(build_id().size(), 32U);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace fullbore

// Machine code that is kept for later starts: when it is found, when it is not, and what a start says then.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/device/cuda/driver/driver.h"
#include "tests/cuda/kept_code.h"

namespace fullbore::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CodeOfStarts : public KeptCode {
 protected:
  /// What a start did: the program's memory, what was done about code, and what was said on stderr.
  struct Start {
    Words memory;
    int64_t compilations = 0, loads = 0, refusals = 0;
    std::string said;
  };

  /// Opens the card, runs a program of one module, or one with a loop, and closes it.
  Start start(bool has_loop = false) const {
    const FakeCuda before = fake();
    Start start;
    ::testing::internal::CaptureStderr();
    start.memory = outcome_of(drawn(6, 2), {}, [&](Recorder& recorder, Address memory) {
                     if (has_loop)
                       recorder.begin_loop(0, {.iterations = 3, .count = row(memory, 0)});
                     mix(recorder, 1, row(memory, 1), row(memory, 2), row(memory, 2));
                     if (has_loop) recorder.end_loop();
                   }).memory;
    start.said = ::testing::internal::GetCapturedStderr();
    start.compilations = fake().compilations - before.compilations;
    start.loads = fake().code_loads - before.code_loads;
    start.refusals = fake().code_refusals - before.code_refusals;
    return start;
  }
  /// One that finds nothing, and says so little.
  void expect_compiles(const Start& start, const std::string& what) const {
    EXPECT_EQ(start.compilations, 1) << what;
    EXPECT_EQ(start.memory, wanted()) << what;
  }
  void expect_finds(const Start& start, const std::string& what) const {
    EXPECT_EQ(start.compilations, 0) << what;
    EXPECT_EQ(start.loads, 1) << what;
    EXPECT_EQ(start.refusals, 0) << what;
    EXPECT_EQ(start.memory, wanted()) << what;
    EXPECT_EQ(start.said, "") << what;
  }
  /// Anew, with one line that says why, and whole again afterwards.
  void expect_made_again(const std::string& why, const std::string& what) const {
    const Start again = start();
    expect_compiles(again, what);
    EXPECT_EQ(again.refusals, 0)
        << what << ": the driver was given code that the cache should not have taken";
    EXPECT_THAT(
        again.said,
        AllOf(StartsWith("fullbore: warning: the card's code is compiled anew: "), HasSubstr(why)))
        << what;
    EXPECT_EQ(std::ranges::count(again.said, '\n'), 1) << what;
    expect_finds(start(), what);
  }
  /// Without a cache.
  const Words& wanted() const {
    if (wanted_.empty()) {
      const Variable off("FULLBORE_COMPILE_CACHE", "off");
      wanted_ = start().memory;
    }
    return wanted_;
  }

 private:
  mutable Words wanted_;
};

TEST_F(CodeOfStarts, SparesALaterStartTheCompiler) {
  const Start first = start();
  expect_compiles(first, "first");
  EXPECT_EQ(first.said, "");
  EXPECT_EQ(entries().size(), 1U);
  expect_finds(start(), "second");
  fake().compiler = 0;
  expect_finds(start(), "of a driver that cannot compile");
}

TEST_F(CodeOfStarts, IsOfOneDriverAndOneCard) {
  expect_compiles(start(), "first");
  size_t kinds = 1;
  const auto expect_another = [&](const char* what) {
    const Start other = start();
    expect_compiles(other, what);
    EXPECT_EQ(other.refusals, 0) << what;
    EXPECT_EQ(other.said, "") << what;
    EXPECT_EQ(entries().size(), ++kinds) << what;
    expect_finds(start(), what);
  };
  fake().version = 12050;
  expect_another("another version of the driver");
  fake().version = 12040;
  fake().capability = 89;
  expect_another("another compute capability");
  fake().capability = 90;
  std::strcpy(fake().card_name, "Another 90");
  expect_another("another card of the same capability");
  fake().card_name[0] = '\0';
  expect_finds(start(), "as at first");
}

// Releases of a driver have one version of CUDA and other compilers. A copy of the library is a driver of its own, with cards of
// its own.
TEST_F(CodeOfStarts, IsOfOneFileOfTheDriver) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a second copy of the fake driver is unloaded, and what it has of its machine is "
                  "lost with it";
#endif
  expect_compiles(start(), "first");
  fs::copy_file(fake_driver(), scratch_ / "libcuda.so.2");
  fs::create_symlink("libcuda.so.2", scratch_ / "libcuda.so.1");
  const Variable other("FULLBORE_CUDA_DRIVER", scratch_ / "libcuda.so.1");
  EXPECT_EQ(start().memory, wanted());
  EXPECT_EQ(entries().size(), 2U);
  EXPECT_THAT(load_driver()->build(), StartsWith("libcuda.so.2, "));
}

// The first 18 bytes tell the format, then come the lengths of key and content, the tag, the key, which ends with the PTX, and the
// code.
TEST_F(CodeOfStarts, WhatIsDamagedIsMadeAgain) {
  expect_compiles(start(), "first");
  const std::string intact = read_file(entries().at(0)).take_or_throw();
  uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, intact.data() + 18, sizeof key_bytes);
  const size_t key = 50, code = key + key_bytes;
  ASSERT_LT(code, intact.size());
  const auto flipped = [&](size_t at) {
    std::string bytes = intact;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  const std::pair<const char*, std::string> damages[] = {
      {"format", flipped(3)},
      {"length of the key", flipped(18)},
      {"length of the code", flipped(26)},
      {"tag", flipped(34)},
      {"end of the tag", flipped(49)},
      {"key", flipped(key + 5)},
      {"end of the key", flipped(code - 1)},
      {"header of the code", flipped(code + 9)},
      {"code", flipped(intact.size() - 2)},
      {"nothing left", ""},
      {"cut within the header", intact.substr(0, 40)},
      {"cut within the key", intact.substr(0, code - 1)},
      {"cut before the code", intact.substr(0, code)},
      {"cut within the code", intact.substr(0, intact.size() - 1)},
      {"something behind it", intact + "x"}};
  for (const auto& [what, bytes] : damages) {
    // A folder of its own, which has not been spoken of.
    const Variable cache("FULLBORE_CACHE", fresh(what));
    expect_compiles(start(), what);
    write(entries().at(0), bytes);
    expect_made_again("is damaged, or was not written with this user's key", what);
    EXPECT_EQ(entries().size(), 1U) << what;
  }
}

TEST_F(CodeOfStarts, WhatAnotherKeyHasSignedIsMadeAgain) {
  {
    const Variable state("XDG_STATE_HOME", scratch_ / "stranger");
    expect_compiles(start(), "first");
    expect_finds(start(), "by the same key");
  }
  expect_made_again("was not written with this user's key", "by another key");
}

TEST_F(CodeOfStarts, WhatAnotherUserOwnsOrLinksIsMadeAgain) {
  expect_compiles(start(), "first");
  const std::string entry = entries().at(0);
  fs::rename(entry, scratch_ / "elsewhere");
  fs::create_symlink(scratch_ / "elsewhere", entry);
  expect_made_again("is a symbolic link", "a link");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const Variable cache("FULLBORE_CACHE", fresh("other"));
  expect_compiles(start(), "first");
  ASSERT_EQ(::chown(entries().at(0).c_str(), 65534, 65534), 0);
  expect_made_again("belongs to user 65534", "another's");
}

TEST_F(CodeOfStarts, AReadOnlyFolderIsToldOnceAndRead) {
  expect_compiles(start(), "first");
  const std::string entry = entries().at(0);
  const WithoutPrivileges obeys_modes;
  ASSERT_EQ(::chmod(folder().c_str(), 0500), 0);
  expect_finds(start(), "read-only");
  fake().version = 12050;  // of which there is nothing
  const Start other = start();
  expect_compiles(other, "read-only, another driver");
  EXPECT_THAT(other.said, HasSubstr(fmt::format(
                              "compiled anew: cannot write to {}: Permission denied", folder())));
  EXPECT_EQ(std::ranges::count(other.said, '\n'), 1);
  EXPECT_EQ(start().said, "") << "once";
  EXPECT_EQ(entries(), std::vector<std::string>{entry});
  ASSERT_EQ(::chmod(folder().c_str(), 0700), 0);
}

TEST_F(CodeOfStarts, AFullDiskIsToldOnceAndLeavesNothing) {
  Start full;
  {
    const SmallFiles limit(1024);
    full = start();
    EXPECT_EQ(start().said, "") << "once";
  }
  expect_compiles(full, "full");
  EXPECT_THAT(full.said, HasSubstr(fmt::format("compiled anew: cannot write to {}: ", folder())));
  EXPECT_EQ(std::ranges::count(full.said, '\n'), 1);
  EXPECT_TRUE(entries().empty());
  expect_compiles(start(), "room again");
  expect_finds(start(), "at last");
}

TEST_F(CodeOfStarts, CanBeSwitchedOff) {
  const Variable off("FULLBORE_COMPILE_CACHE", "off");
  for (int i = 0; i < 2; ++i) {
    const Start each = start();
    expect_compiles(each, "off");
    EXPECT_EQ(each.loads, 0);
    EXPECT_EQ(each.said, "");
  }
  EXPECT_TRUE(entries().empty());
}

// The driver itself links what they call: what its linker makes of it does nothing here.
TEST_F(CodeOfStarts, CodeThatCallsTheDriverIsLoadedAsPtx) {
  const Start first = start(true);
  EXPECT_GT(fake().conditional_bodies, 0);
  EXPECT_EQ(entries().size(), 1U);
  const Start second = start(true);
  EXPECT_EQ(second.compilations, first.compilations - 1);
  EXPECT_EQ(second.loads, 1);
  EXPECT_EQ(second.memory, first.memory);
  EXPECT_NE(second.memory, wanted()) << "as often as the loop's count says";
}

// Whatever the compiler by itself meets, the driver loads the PTX as it did before.
TEST_F(CodeOfStarts, WhatCannotBeMadeIsLoadedAsPtx) {
  for (const char* const call : {"cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete"})
    for (const int64_t code : {kUnknown, kInvalidPtx, kOutOfMemory}) {
      fail(call, code);
      const Start each = start();
      EXPECT_EQ(fake().fail_at, 0) << call;
      EXPECT_EQ(each.memory, wanted()) << call;
      EXPECT_EQ(each.loads, 0) << call;
      EXPECT_EQ(each.said, "") << call;
      EXPECT_EQ(fake().links, 0) << call;
      EXPECT_TRUE(entries().empty()) << call;
    }
  // Made, and then refused.
  for (const int64_t code : {kInvalidImage, kNoBinaryForGpu}) {
    fail("cuModuleLoadDataEx", code);
    EXPECT_EQ(start().memory, wanted());
    EXPECT_EQ(fake().fail_at, 0);
    EXPECT_TRUE(entries().empty());
  }
  expect_compiles(start(), "and then it can");
  expect_finds(start(), "and is kept");
}

TEST_F(CodeOfStarts, WhatTheDriverRefusesLaterIsMadeAgain) {
  expect_compiles(start(), "first");
  fail("cuModuleLoadDataEx", kInvalidImage);
  const Start again = start();
  EXPECT_EQ(fake().fail_at, 0);
  expect_compiles(again, "refused");
  EXPECT_THAT(again.said, HasSubstr("compiled anew: the driver refuses code that it has made"));
  expect_finds(start(), "made again");
}

}  // namespace
}  // namespace fullbore::cuda

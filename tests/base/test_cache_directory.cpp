// Where caches are kept: where the environment says, if nobody else can have put anything there.
#include "fullbore/base/cache_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "fullbore/base/files.h"
#include "tests/base/environment_variable.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::EnvironmentVariable;
using ::testing::HasSubstr;
using ::testing::StartsWith;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// What a process of its own says: each has its own temporary cache, key and warning.
struct Told {
  std::string out;
  std::string err;
};

class CacheDirectoryTest : public ::testing::Test {
 protected:
  CacheDirectoryTest() {
    fs::create_directories(folder_ / "home");
    fs::create_directories(folder_ / "tmp");
  }

  Told in_a_process(const std::function<std::string()>& work) const {
    const std::string out = folder_ / ".out", err = folder_ / ".err";
    std::fflush(stdout);  // or the child writes it again
    const pid_t child = fork();
    if (child == 0) {
      const int file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(file, 2);
      const std::string text = work();
      (void)write_file_atomically(out, text).ok();
      std::exit(0);  // with what is done at exit
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return {read_file(out).take_or_throw(), read_file(err).take_or_throw()};
  }
  /// A folder below TMPDIR that is gone when the process is.
  void expect_temporary(const std::string& reason) const {
    const Told told = in_a_process([] {
      const std::string kernels = compile_cache_directory("kernels");
      compile_cache_directory("plans");
      return fmt::format("{} {:o} {:o}", kernels, mode_of(kernels),
                         mode_of(fs::path(kernels).parent_path().string()));
    });
    EXPECT_THAT(told.out, StartsWith(folder_ / "tmp/fullbore-"));
    EXPECT_THAT(told.out, ::testing::EndsWith("/kernels 700 700"));
    EXPECT_THAT(told.err, HasSubstr(reason));
    EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 1) << told.err;
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
  }

  testing::ScratchFolder folder_;
  EnvironmentVariable home_{"HOME", (folder_ / "home").c_str()};
  EnvironmentVariable temporary_{"TMPDIR", (folder_ / "tmp").c_str()};
  EnvironmentVariable own_{"FULLBORE_CACHE", nullptr};
  EnvironmentVariable cache_{"XDG_CACHE_HOME", nullptr};
  EnvironmentVariable state_{"XDG_STATE_HOME", nullptr};
  EnvironmentVariable compile_{"FULLBORE_COMPILE_CACHE", nullptr};
};

TEST_F(CacheDirectoryTest, PrefersOwnVariableThenXdgThenHome) {
  const EnvironmentVariable xdg("XDG_CACHE_HOME", (folder_ / "x").c_str());
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  EXPECT_EQ(cache_directory(), folder_ / "own");
  const EnvironmentVariable no_own("FULLBORE_CACHE", "");  // empty is unset
  EXPECT_EQ(cache_directory(), folder_ / "x/fullbore");
  const EnvironmentVariable relative("XDG_CACHE_HOME", "x");  // would be anybody's
  EXPECT_EQ(cache_directory(), folder_ / "home/.cache/fullbore");
  EXPECT_EQ(cache_directory_problem(), "");
}

TEST_F(CacheDirectoryTest, OfCompilationsCanBeSwitchedOff) {
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  const EnvironmentVariable off("FULLBORE_COMPILE_CACHE", "off");
  EXPECT_EQ(compile_cache_directory("plans"), "");
  EXPECT_EQ(cache_directory(), folder_ / "own");
}

TEST_F(CacheDirectoryTest, IsMadeForThisUserAlone) {
  const Told told = in_a_process([] { return compile_cache_directory("kernels"); });
  EXPECT_EQ(told.out, folder_ / "home/.cache/fullbore/kernels");
  EXPECT_EQ(told.err, "");
  EXPECT_EQ(mode_of(folder_ / "home/.cache/fullbore"), 0700U);
  EXPECT_EQ(mode_of(told.out), 0700U);
  EXPECT_EQ(mode_of(folder_ / "home/.local/state/fullbore/cache.key"), 0600U);
  EXPECT_EQ(fs::file_size(folder_ / "home/.local/state/fullbore/cache.key"), 16U);
}

TEST_F(CacheDirectoryTest, WithoutAHomeItIsOfThisProcess) {
  const EnvironmentVariable no_home("HOME", nullptr);
  expect_temporary("none of FULLBORE_CACHE, XDG_CACHE_HOME and HOME");
}

TEST_F(CacheDirectoryTest, WithoutAPlaceForAKeyItIsOfThisProcess) {
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  const EnvironmentVariable no_home("HOME", nullptr);
  expect_temporary("neither XDG_STATE_HOME nor HOME");
}

TEST_F(CacheDirectoryTest, ALinkIsNotFollowed) {
  fs::create_directories(folder_ / "planted/kernels");
  fs::permissions(folder_ / "planted", fs::perms::owner_all);
  fs::create_directory_symlink("planted", folder_ / "own");
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  expect_temporary("own is a symbolic link");
  const EnvironmentVariable slash("FULLBORE_CACHE", (folder_ / "own/").c_str());
  expect_temporary("own is a symbolic link");
}

TEST_F(CacheDirectoryTest, ALinkedFolderInItIsNotFollowed) {
  fs::create_directories(folder_ / "planted");
  fs::create_directories(folder_ / "own");
  fs::permissions(folder_ / "own", fs::perms::owner_all);
  fs::create_directory_symlink("../planted", folder_ / "own/kernels");
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  expect_temporary("own/kernels is a symbolic link");
}

TEST_F(CacheDirectoryTest, WhereOthersCanWriteItIsNot) {
  fs::create_directories(folder_ / "own/kernels");
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  for (const char* name : {"own", "own/kernels"})
    for (const mode_t mode : {0777, 01777, 0770, 0702}) {
      ASSERT_EQ(::chmod((folder_ / "own").c_str(), 0700), 0);
      ASSERT_EQ(::chmod((folder_ / "own/kernels").c_str(), 0700), 0);
      ASSERT_EQ(::chmod((folder_ / name).c_str(), mode), 0);
      expect_temporary(fmt::format("{} has mode {:04o}", name, mode));
      EXPECT_EQ(mode_of(folder_ / name), mode) << "left as it was";
    }
}

// A umask of 022 has made them so in earlier versions: nobody else could write there.
TEST_F(CacheDirectoryTest, WhereOthersCouldReadTheyCanNoMore) {
  fs::create_directories(folder_ / "own/kernels");
  ASSERT_EQ(::chmod((folder_ / "own").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder_ / "own/kernels").c_str(), 0755), 0);
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  const Told told = in_a_process([] { return compile_cache_directory("kernels"); });
  EXPECT_EQ(told.out, folder_ / "own/kernels");
  EXPECT_EQ(told.err, "");
  EXPECT_EQ(mode_of(told.out), 0700U);
  EXPECT_EQ(mode_of(folder_ / "own"), 0755U) << "it may hold more than ours";
}

TEST_F(CacheDirectoryTest, OfAnotherUserItIsNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directories(folder_ / "own");
  ASSERT_EQ(::chown((folder_ / "own").c_str(), 65534, 65534), 0);
  const EnvironmentVariable own("FULLBORE_CACHE", (folder_ / "own").c_str());
  expect_temporary("belongs to user 65534");
}

TEST_F(CacheDirectoryTest, TheKeyIsOfThisUserAlone) {
  const std::string state = folder_ / "home/.local/state/fullbore";
  const std::string key = state + "/cache.key";
  in_a_process([] { return compile_cache_directory("kernels"); });
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  expect_temporary("cache.key has mode 0644");
  fs::remove(key);
  folder_.put("planted", std::string(16, 'k'));
  ASSERT_EQ(::chmod((folder_ / "planted").c_str(), 0600), 0);
  fs::create_symlink(folder_ / "planted", key);
  expect_temporary("cache.key is a symbolic link");
  fs::remove(key);
  ASSERT_EQ(::chmod(state.c_str(), 0777), 0);
  expect_temporary("fullbore has mode 0777");
}

}  // namespace
}  // namespace fullbore

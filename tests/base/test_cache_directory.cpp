#include "fullbore/base/cache_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string>

namespace fullbore {
namespace {

/// Sets or unsets a variable, and puts it back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Variable() {
    if (old_)
      setenv(name_, old_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(CacheDirectory, PrefersOwnVariableThenXdgThenHome) {
  const Variable home("HOME", "/home/u");
  const Variable xdg("XDG_CACHE_HOME", "/x");
  const Variable own("FULLBORE_CACHE", "/own");
  EXPECT_EQ(cache_directory(), "/own");
  const Variable no_own("FULLBORE_CACHE", "");  // empty is unset
  EXPECT_EQ(cache_directory(), "/x/fullbore");
  const Variable no_xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(cache_directory(), "/home/u/.cache/fullbore");
  const Variable no_home("HOME", nullptr);
  EXPECT_EQ(cache_directory().rfind("/tmp/fullbore-", 0), 0U);
}

TEST(CacheDirectory, OfCompilationsCanBeSwitchedOff) {
  const Variable own("FULLBORE_CACHE", "/own");
  {
    const Variable on("FULLBORE_COMPILE_CACHE", nullptr);
    EXPECT_EQ(compile_cache_directory("plans"), "/own/plans");
  }
  const Variable off("FULLBORE_COMPILE_CACHE", "off");
  EXPECT_EQ(compile_cache_directory("plans"), "");
  EXPECT_EQ(cache_directory(), "/own");
}

}  // namespace
}  // namespace fullbore

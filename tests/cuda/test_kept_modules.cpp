// Machine code of modules that are loaded by themselves: by several threads, by drivers that lack something or fail.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "fullbore/device/cuda/driver/context.h"
#include "tests/cuda/kept_code.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KeptModules : public KeptCode {
 protected:
  static std::shared_ptr<const Module> module(const std::string& name,
                                              const std::string& body = "ret;") {
    return std::make_shared<Module>(
        Module{.name = name,
               .ptx = fmt::format(".version 7.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry {}() {{ {} }}\n",
                                  name, body)});
  }
  static std::vector<LoadRequest> several() {
    std::vector<LoadRequest> requests;
    for (int i = 0; i < 12; ++i) {
      const std::string name = fmt::format("entry_{}", i);
      requests.push_back({module(name), name, 0});
    }
    return requests;
  }
};

// By several threads at once; and of all that is damaged there is one line.
TEST_F(KeptModules, AreCompiledAndFoundTogether) {
  const auto load = [] { Context(load_driver(), 0).load(several()); };
  load();
  EXPECT_EQ(fake().compilations, 12);
  ASSERT_EQ(entries().size(), 12U);
  load();
  EXPECT_EQ(fake().compilations, 12);
  for (const std::string& each : entries()) write(each, "torn");
  ::testing::internal::CaptureStderr();
  load();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(fake().compilations, 24);
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  load();
  EXPECT_EQ(fake().compilations, 24);
}

TEST_F(KeptModules, ErrorsAreThoseOfPtx) {
  const auto bad = module("bad", "add.s32 %r1, %r2;");
  const auto error = [&] {
    return message_of<CodeRefused>([&] { Context(load_driver(), 0).function(bad, "bad", 0); });
  };
  const std::string with_cache = error();
  const Variable off("FULLBORE_COMPILE_CACHE", "off");
  EXPECT_EQ(with_cache, error());
  EXPECT_THAT(with_cache, AllOf(HasSubstr("cuModuleLoadDataEx of 'bad'"),
                                HasSubstr("the driver's compiler says: ")));
  EXPECT_TRUE(entries().empty());
}

TEST_F(KeptModules, ADriverWithoutACompilerByItselfLoadsPtx) {
  const auto driver = std::make_shared<Driver>(fake_driver());
  ASSERT_TRUE(driver->has_linker());
  driver->complete_link.reset();
  Context(driver, 0).function(module("some"), "some", 0);
  EXPECT_EQ(fake().code_loads, 0);
  EXPECT_TRUE(entries().empty());
}

// With an empty cache and with one that has it.
TEST_F(KeptModules, GiveBackWhatTheyTookWhicheverCallFails) {
  for (const bool is_full : {false, true}) {
    int failures = 0;
    for (int64_t at = 1;; ++at) {
      const Variable cache("FULLBORE_CACHE", fresh("cache"));
      if (is_full) Context(load_driver(), 0).load(several());
      std::string message;
      {
        Context context(load_driver(), 0);
        fail("", kUnknown, at);
        message = message_of<Error>([&] { context.function(module("entry_0"), "entry_0", 0); });
        const bool is_past = fake().fail_at > 0;
        fake().fail_at = 0;
        if (is_past) break;
      }
      ++failures;
      const std::string call = fake().failed;
      if (call.starts_with("cuLink"))
        EXPECT_EQ(message, "") << call;
      else
        EXPECT_THAT(message, HasSubstr(call));
      FakeCuda& now = fake();
      if (call == "cuLinkDestroy")
        now.links = 0;  // what the driver refuses to take back is its own
      EXPECT_EQ(now.links + now.modules + now.streams + now.contexts, 0) << call << ": " << message;
    }
    EXPECT_GE(failures, is_full ? 4 : 8);
  }
}

}  // namespace
}  // namespace fullbore::cuda

#include "fullbore/app/job_options.h"

#include <gmock/gmock.h>

#include <vector>

namespace fullbore {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string warned(const CompileOptions& options, const std::vector<KernelFallback>& fallbacks) {
  testing::internal::CaptureStderr();
  options.on_fallbacks(fallbacks);
  return testing::internal::GetCapturedStderr();
}

TEST(CompileOptions, NodesWithoutAKernelAreToldOnce) {
  const CompileOptions options = compile_options(Config());
  const KernelFallback tanh{"tanh f32[4] in mlp", "model.cpp:7", "LLVM: no"};
  const KernelFallback sine{"sin f32[4]", "", "LLVM: no"};
  EXPECT_THAT(
      warned(options, {tanh}),
      HasSubstr("fullbore: warning: tanh f32[4] in mlp (model.cpp:7): no kernel (LLVM: no)"));
  const CompileOptions of_another_program = options;
  const std::string again = warned(of_another_program, {tanh, sine});
  EXPECT_THAT(again, Not(HasSubstr("tanh")));
  EXPECT_THAT(again, HasSubstr("fullbore: warning: sin f32[4]: no kernel"));
  EXPECT_EQ(warned(options, {tanh, sine}), "");
}

}  // namespace
}  // namespace fullbore

// What an op's function gives its node where the caller says nothing.
#include "fullbore/ops/default_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "fullbore/base/files.h"
#include "fullbore/ops/ops.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// "stride=1", or "segments" where the node has none.
std::vector<std::string> texts(const char* op) {
  std::vector<std::string> result;
  for (const DefaultAttribute& each : default_attributes(get_op(op)))
    result.push_back(each.value ? each.name + "=" + *each.value : each.name);
  return result;
}

TEST(DefaultAttributes, AreThoseOfTheOpsFunction) {
  EXPECT_THAT(texts("cross_entropy"),
              ElementsAre("ignore_index=-1", "label_smoothing=0.0", "z_loss=0.0"));
  EXPECT_THAT(texts("rms_norm"), ElementsAre("epsilon=1e-06"));
  EXPECT_THAT(texts("matmul"), ElementsAre("transpose_a=false", "transpose_b=false", "wide=false"));
  EXPECT_THAT(texts("convolution"),
              ElementsAre("after=[0,0]", "before=[0,0]", "dilation=[1,1]", "groups=1",
                          "input_dilation=[1,1]", "stride=[1,1]", "wide=false"));
}

TEST(DefaultAttributes, OfAnAxisIsTheLastOne) {
  EXPECT_THAT(texts("softmax"), ElementsAre("axis=-1"));
}

TEST(DefaultAttributes, AreNotWhatTheCallerSays) {
  EXPECT_THAT(texts("slice"), ElementsAre("stride=1")) << "not axis, start and stop";
  EXPECT_THAT(texts("cumsum"), ElementsAre("exclusive=false", "reverse=false"));
  EXPECT_THAT(texts("max_pool"), ElementsAre("dilation=[1,1]", "padding=[0,0]"))
      << "the stride is the kernel's";
  EXPECT_THAT(texts("attention"),
              ElementsAre("causal=false", "dropout=0.0", "masked=false", "site=0"))
      << "the scale is the width's";
  EXPECT_THAT(texts("argmax"), IsEmpty());
}

TEST(DefaultAttributes, MayBeThatThereIsNone) {
  EXPECT_THAT(texts("loop"),
              ElementsAre("counted=false", "parallel", "reverse=false", "segments", "until=false"));
}

// The declaration of a function in a header of ops/, without what is no attribute: lines and optional operands.
std::vector<std::string> declarations(const std::string& text, std::string_view op) {
  std::vector<std::string> found;
  const std::regex call("\n[A-Za-z][A-Za-z0-9:<>, ]* " + std::string(op) + R"(\(([^;]*)\);)");
  for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
    std::string arguments = (*at)[1];
    for (const char* other : {R"(SourceLoc loc = SourceLoc::here\(\))", R"(Tensor \w+ = \{\})"})
      arguments = std::regex_replace(arguments, std::regex(other), "");
    found.push_back(arguments);
  }
  return found;
}

// Who gives an op's function a default is led here.
TEST(DefaultAttributes, AreKnownOfEveryFunctionThatHasSome) {
  std::string text;
  for (const auto& file :
       std::filesystem::directory_iterator(testing::source_folder() + "/fullbore/ops"))
    if (file.path().extension() == ".h") text += read_file(file.path().string()).value();
  int functions = 0;
  for (const OpDef* op : all_ops()) {
    const std::vector<Sample> samples = op->samples();
    if (std::ranges::all_of(samples, [](const Sample& each) { return each.attributes.empty(); }))
      continue;
    for (const std::string& arguments : declarations(text, op->name)) {
      if (arguments.find('=') == std::string::npos &&
          arguments.find("Options") == std::string::npos)
        continue;
      ++functions;
      // Axes that stay are reshaped back: no attribute. Classes and rows are, by default, as many as the operands say.
      if (op->name.starts_with("reduce_") || op->name == "linear_log_probability") continue;
      EXPECT_THAT(default_attributes(*op), Not(IsEmpty())) << op->name << '(' << arguments << ')';
    }
  }
  EXPECT_GE(functions, 29) << "the expression still finds declarations";
}

}  // namespace
}  // namespace fullbore

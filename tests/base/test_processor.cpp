#include "fullbore/base/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fullbore/base/draw_unit.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// Whatever a test asks for goes with it.
class ProcessorLimit : public ::testing::Test {
 protected:
  void TearDown() override { limit_processor("auto", "test"); }

  static std::string refusal(const std::string& name) {
    try {
      limit_processor(name, "engine.processor");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
};

// What FULLBORE_PROCESSOR leaves.
ProcessorLevel highest() { return this_processor().level; }

TEST_F(ProcessorLimit, HasItsLevelsInstructionsAndNoOthers) {
  for (const ProcessorLevel level : processor_levels()) {
    if (level > highest()) continue;
    const ProcessorLevel before = highest();
    limit_processor(processor_level_name(level), "test");
    const Processor processor = this_processor();
    EXPECT_EQ(processor.level, level);
    EXPECT_EQ(processor.lowered, level < machine_processor().level);
    EXPECT_EQ(processor.vector_unit >= VectorUnit::avx2, level >= ProcessorLevel::avx2);
    EXPECT_EQ(processor.vector_unit >= VectorUnit::avx512, level >= ProcessorLevel::avx512);
    EXPECT_EQ(processor.avx512_bf16, level >= ProcessorLevel::avx512_bf16);
    EXPECT_EQ(processor.amx_bf16, level >= ProcessorLevel::amx);
    if (processor.lowered) {
      EXPECT_FALSE(processor.avx_vnni);  // of no level
      EXPECT_EQ(processor.avx512_vnni, level >= ProcessorLevel::avx512_bf16);
    }
    EXPECT_EQ(draw_units().front().name, vector_unit_name(processor.vector_unit));
    limit_processor("auto", "test");
    EXPECT_EQ(highest(), before);
  }
}

TEST_F(ProcessorLimit, OnlyLowers) {
  for (const ProcessorLevel level : processor_levels()) {
    if (level <= machine_processor().level) continue;
    const std::string name(processor_level_name(level));
    EXPECT_THAT(refusal(name), HasSubstr("engine.processor: " + name + " was asked for"));
    EXPECT_THAT(refusal(name), HasSubstr(processor_level_name(machine_processor().level)));
  }
}

TEST_F(ProcessorLimit, IsNoMoreThanTheEnvironmentAllows) {
  const ProcessorLevel before = highest();
  limit_processor(processor_level_name(machine_processor().level), "test");
  EXPECT_EQ(highest(), before);
}

TEST_F(ProcessorLimit, NamesTheNearestForAnUnknownOne) {
  const std::string highest(processor_level_name(processor_levels().back()));
  EXPECT_THAT(refusal(highest + "x"), HasSubstr("Did you mean '" + highest + "'?"));
}

TEST(ProcessorLevels, HaveNamesThatAreReadBack) {
  for (const ProcessorLevel level : processor_levels())
    EXPECT_EQ(processor_level_of(processor_level_name(level)), level);
  EXPECT_EQ(processor_level_of("auto"), std::nullopt);
}

}  // namespace
}  // namespace fullbore

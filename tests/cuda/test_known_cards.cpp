#include "fullbore/device/cuda/known_cards.h"

#include <gmock/gmock.h>

#include "fullbore/base/error.h"

namespace fullbore::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view name) {
  try {
    known_card(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(KnownCards, AreFoundByPartsOfTheirNames) {
  EXPECT_EQ(known_card("RTX 4090").name, "RTX 4090");
  EXPECT_EQ(known_card("rtx4090").name, "RTX 4090");
  EXPECT_EQ(known_card("4050").name, "RTX 4050 Laptop");
  EXPECT_EQ(known_card("NVIDIA GeForce RTX 4060 Ti").name, "RTX 4060 Ti");
  EXPECT_EQ(known_card("nvidia h200").capability, 90);
}

TEST(KnownCards, OthersAreRefusedWithTheNearestName) {
  EXPECT_THAT(refusal("RTX 4080"), AllOf(HasSubstr("card 'RTX 4080' is not known"),
                                         HasSubstr("Did you mean 'RTX 4090'?")));
  EXPECT_THAT(refusal("RTX"), HasSubstr("RTX 4090, RTX 5090 are meant"));
  EXPECT_THAT(refusal(""), HasSubstr("Known are RTX 4050 Laptop"));
}

// What a data sheet says twice must agree, to its rounding: 128 fused multiply-adds a multiprocessor and cycle on
// consumer cards and the H100's kin, 64 on the A100, at clocks that cards have.
TEST(KnownCards, PeaksAreThoseOfTheirMultiprocessors) {
  for (const KnownCard& card : known_cards()) {
    const double cores = card.multiprocessors * (card.capability == 80 ? 64.0 : 128.0);
    const double clock = card.fp32_flops / (2 * cores);
    EXPECT_GT(clock, 1.3e9) << card.name;
    EXPECT_LT(clock, 2.7e9) << card.name;
    const bool is_consumer = card.capability == 89 || card.capability == 120;
    EXPECT_NEAR(card.bf16_flops / card.fp32_flops,
                is_consumer             ? 2
                : card.capability == 80 ? 16
                                        : 14.8,
                0.1)
        << card.name;
    EXPECT_GT(card.facts().shared_bytes, 98 << 10);
  }
}

}  // namespace
}  // namespace fullbore::cuda

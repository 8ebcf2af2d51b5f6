#include "fullbore/device/cuda/driver/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/text.h"

namespace fullbore::cuda {
namespace {

constexpr int kOldestCapability = 80;

std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

// Dense bf16 products with fp32 sums that a multiprocessor makes in a clock, times two. Source: NVIDIA's white papers of
// Ampere, Ada, Hopper and Blackwell.
int flops_in_a_clock(int capability) {
  switch (capability) {
    case 80: return 2048;
    case 90: return 4096;
    case 100:
    case 103: return 8192;
    default: return 512;  // of cards for displays
  }
}

std::string name_of(const Driver& driver, int card) {
  char name[128] = {};
  driver.card_name(name, static_cast<int>(sizeof name), card);
  name[sizeof name - 1] = '\0';
  return excerpt(name, sizeof name);
}

int attribute(const Driver& driver, int card, CardAttribute which) {
  int value = 0;
  driver.card_attribute(&value, which, card);
  return value;
}

/// "0: NVIDIA H200, 1: NVIDIA H200".
std::string list_of_cards(const Driver& driver, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    int handle = 0;
    driver.card(&handle, i);
    list += fmt::format("{}{}: {}", i == 0 ? "" : ", ", i, name_of(driver, handle));
  }
  return list;
}

}  // namespace

std::string Card::text(const Driver& driver) const {
  return fmt::format("{}, compute capability {}, {}, driver CUDA {}{}", name,
                     capability_text(facts.capability), bytes_text(static_cast<double>(bytes)),
                     driver.version_text(),
                     driver.has_conditional_nodes()
                         ? ""
                         : ", before 12.4: the host steps loops whose counts depend on data");
}

int card_number(const std::string& device) {
  const size_t colon = device.find(':');
  if (colon == std::string::npos) return 0;
  const std::string_view digits = std::string_view(device).substr(colon + 1);
  int number = -1;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  if (error != std::errc() || end != digits.end() || number < 0)
    throw UsageError(
        fmt::format("engine.device={}: behind the colon stands the number of a card, from 0 on: "
                    "cuda:1",
                    excerpt(device)));
  return number;
}

Card find_card(const Driver& driver, int number) {
  int count = 0;
  driver.count_cards(&count);
  if (count == 0)
    throw UsageError(fmt::format(
        "no NVIDIA card: the driver of CUDA {} sees none. CUDA_VISIBLE_DEVICES hides cards from "
        "it; use engine.device=cpu without one",
        driver.version_text()));
  if (number >= count)
    throw UsageError(
        fmt::format("engine.device=cuda:{}: there {} {} ({}); use engine.device=cuda:{} "
                    "or engine.device=cpu",
                    number, count == 1 ? "is one card" : "are cards", count,
                    list_of_cards(driver, count), count - 1));
  Card card;
  card.number = number;
  driver.card(&card.handle, number);
  card.name = name_of(driver, card.handle);
  const auto ask = [&](CardAttribute which) { return attribute(driver, card.handle, which); };
  CardFacts& facts = card.facts;
  facts.capability = 10 * ask(kCapabilityMajor) + ask(kCapabilityMinor);
  if (facts.capability < kOldestCapability)
    throw UsageError(fmt::format(
        "card {} ({}) has compute capability {}; {} or later is needed; use engine.device=cpu",
        number, card.name, capability_text(facts.capability), capability_text(kOldestCapability)));
  facts.driver = driver.version();
  size_t bytes = 0;
  driver.card_bytes(&bytes, card.handle);
  card.bytes = static_cast<int64_t>(bytes);
  facts.memory_bytes = card.bytes;
  facts.multiprocessors = ask(kMultiprocessorCount);
  facts.shared_bytes = ask(kMostSharedBytesOptedIn);
  // Both edges of the memory's clock carry data.
  facts.bytes_per_second = 2e3 * ask(kMemoryClockKilohertz) * ask(kMemoryBusBits) / 8;
  facts.flops_per_second =
      0.9e3 * ask(kClockKilohertz) * facts.multiprocessors * flops_in_a_clock(facts.capability);
  return card;
}

}  // namespace fullbore::cuda

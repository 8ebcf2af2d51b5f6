#include "fullbore/device/cuda/known_cards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore::cuda {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
// PCI Express 4.0: 16 transfers of a bit a nanosecond in each of eight lanes, 128 of 130 bits of which are data.
constexpr double kEightLanes4 = 16 * kGiga * 128 / 130;

// Consumer cards multiply bf16 with sums in fp32 at half the rate of sums in fp16, which is the one that is advertised.
constexpr KnownCard kCards[] = {
    {.name = "RTX 4050 Laptop",
     .capability = 89,
     .multiprocessors = 20,
     .memory_bytes = 6 * kGiB,
     .bytes_per_second = 192 * kGiga,
     .fp32_flops = 12.1 * kTera,
     .tf32_flops = 12.1 * kTera,
     .bf16_flops = 24.3 * kTera,
     .fp8_flops = 48.5 * kTera,
     .host_bytes_per_second = kEightLanes4,
     .source = "NVIDIA, GeForce RTX 40 laptops: 2,560 cores at 2.37 GHz; less at less than 115 W"},
    {.name = "RTX 4060 Ti",
     .capability = 89,
     .multiprocessors = 34,
     .memory_bytes = 8 * kGiB,
     .bytes_per_second = 288 * kGiga,
     .fp32_flops = 22.1 * kTera,
     .tf32_flops = 22.1 * kTera,
     .bf16_flops = 44.1 * kTera,
     .fp8_flops = 88.2 * kTera,
     .host_bytes_per_second = kEightLanes4,
     .source = "NVIDIA, Ada GPU architecture, appendix; the smaller of two memories"},
    {.name = "RTX 4090",
     .capability = 89,
     .multiprocessors = 128,
     .memory_bytes = 24 * kGiB,
     .bytes_per_second = 1008 * kGiga,
     .fp32_flops = 82.6 * kTera,
     .tf32_flops = 82.6 * kTera,
     .bf16_flops = 165.2 * kTera,
     .fp8_flops = 330.3 * kTera,
     .host_bytes_per_second = 2 * kEightLanes4,
     .source = "NVIDIA, Ada GPU architecture, appendix A"},
    {.name = "RTX 5090",
     .capability = 120,
     .multiprocessors = 170,
     .memory_bytes = 32 * kGiB,
     .bytes_per_second = 1792 * kGiga,
     .fp32_flops = 104.8 * kTera,
     .tf32_flops = 104.8 * kTera,
     .bf16_flops = 209.5 * kTera,
     .fp8_flops = 419 * kTera,
     .host_bytes_per_second = 4 * kEightLanes4,
     .source = "NVIDIA, RTX Blackwell GPU architecture, appendix A"},
    {.name = "A100",
     .capability = 80,
     .multiprocessors = 108,
     .memory_bytes = 80 * kGiB,
     .bytes_per_second = 2039 * kGiga,
     .fp32_flops = 19.5 * kTera,
     .tf32_flops = 156 * kTera,
     .bf16_flops = 312 * kTera,
     .host_bytes_per_second = 2 * kEightLanes4,
     .source = "NVIDIA, A100 data sheet, SXM with 80 GB"},
    {.name = "H100",
     .capability = 90,
     .multiprocessors = 132,
     .memory_bytes = 80 * kGiB,
     .bytes_per_second = 3350 * kGiga,
     .fp32_flops = 66.9 * kTera,
     .tf32_flops = 494.7 * kTera,
     .bf16_flops = 989.4 * kTera,
     .fp8_flops = 1978.9 * kTera,
     .host_bytes_per_second = 4 * kEightLanes4,
     .source = "NVIDIA, H100 data sheet, SXM"},
    {.name = "H200",
     .capability = 90,
     .multiprocessors = 132,
     .memory_bytes = 141 * kGiga,
     .bytes_per_second = 4800 * kGiga,
     .fp32_flops = 66.9 * kTera,
     .tf32_flops = 494.7 * kTera,
     .bf16_flops = 989.4 * kTera,
     .fp8_flops = 1978.9 * kTera,
     .host_bytes_per_second = 4 * kEightLanes4,
     .source = "NVIDIA, H200 data sheet, SXM"}};

/// Letters and digits alone, small, without the maker's name.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view maker : {"nvidia", "geforce"})
    if (letters.starts_with(maker)) letters.erase(0, maker.size());
  return letters;
}

}  // namespace

CardFacts KnownCard::facts() const {
  const bool is_for_data_centers = capability == 80 || capability == 90;
  constexpr int64_t kShared80 = 163 << 10;
  constexpr int64_t kShared90 = 227 << 10;
  constexpr int64_t kSharedOther = 99 << 10;
  return {.capability = capability,
          .multiprocessors = multiprocessors,
          .shared_bytes = !is_for_data_centers ? kSharedOther
                          : capability == 80   ? kShared80
                                               : kShared90,
          .memory_bytes = static_cast<int64_t>(memory_bytes),
          .bytes_per_second = bytes_per_second,
          .flops_per_second = bf16_flops};
}

std::span<const KnownCard> known_cards() { return kCards; }

const KnownCard& known_card(std::string_view name) {
  const std::string asked = plain(name);
  std::vector<const KnownCard*> meant;
  std::vector<std::string> names;
  for (const KnownCard& card : kCards) {
    names.emplace_back(card.name);
    if (plain(card.name) == asked) return card;
    if (!asked.empty() && plain(card.name).find(asked) != std::string::npos) meant.push_back(&card);
  }
  if (meant.size() == 1) return *meant.front();
  std::vector<std::string_view> candidates;
  for (const KnownCard* card : meant) candidates.push_back(card->name);
  if (!meant.empty())
    throw UsageError(
        fmt::format("card '{}': {} are meant; say which", name, fmt::join(candidates, ", ")));
  throw UsageError(fmt::format("card '{}' is not known.{} Known are {}", name,
                               did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace fullbore::cuda

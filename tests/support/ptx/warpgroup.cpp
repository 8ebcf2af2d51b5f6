// Products of four warps by tensor cores, which run beside the threads: wgmma, and the fence before it. A warp makes its own
// 16 rows of the 64: that the four of a warpgroup make the same products is looked at when a block ends.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "fullbore/base/dtype.h"
#include "tests/support/ptx/block.h"
#include "tests/support/ptx/meetings.h"
#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

constexpr size_t kLanes = 32;
constexpr int64_t kChunkBytes = 16;
constexpr int kRows = 16;   // of a warp
constexpr int kDepth = 16;  // of an instruction

uint64_t slot(Lane& lane, const Instruction& i, int operand) {
  return lane.slots()[i.slots[static_cast<size_t>(operand)]];
}

/// Where an operand lies in shared memory: a descriptor with the 128-byte swizzle. Source: PTX ISA 9.7.15.5.1.
struct Operand {
  uint64_t start = 0;
  uint64_t leading = 0;  ///< from 64 lines to the next, where lines lie contiguous
  uint64_t stride = 0;   ///< from 8 lines to the next; where lines lie contiguous, from 8 of k
  bool is_across = false;

  Operand(Lane& lane, uint64_t descriptor, bool lines_contiguous)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4),
        is_across(lines_contiguous) {
    if (descriptor >> 62 != 1)
      lane.fail("an operand without the 128-byte swizzle is not understood");
    constexpr uint64_t kKnown =
        0x3fff | uint64_t{0x3fff} << 16 | uint64_t{0x3fff} << 32 | uint64_t{3} << 62;
    if ((descriptor & ~kKnown) != 0) lane.fail("bits of a descriptor are not understood");
    if ((start >> 7 & 7) != 0) lane.fail("an operand does not begin with the first of 8 rows");
  }
  uint64_t address(int line, int depth) const {
    const auto l = static_cast<uint64_t>(line), d = static_cast<uint64_t>(depth);
    const uint64_t plain =
        is_across ? start + l / 64 * leading + d / 8 * stride + d % 8 * 128 + l % 64 * 2
                  : start + l / 8 * stride + l % 8 * 128 + d * 2;
    return plain ^ (plain >> 7 & 7) << 4;
  }
};

/// Reads `lines` of an operand by the first lane of a warp: [line][k].
std::vector<float> read(Lane& leader, const Operand& operand, int line0, int lines, bool is_bf16) {
  std::vector<float> values(static_cast<size_t>(lines * kDepth));
  const int outers = operand.is_across ? kDepth : lines;
  const int inners = operand.is_across ? lines : kDepth;
  for (int outer = 0; outer < outers; ++outer)
    for (int inner = 0; inner < inners; inner += 8) {
      const auto line = [&](int i) { return operand.is_across ? inner + i : outer; };
      const auto depth = [&](int i) { return operand.is_across ? outer : inner + i; };
      const uint64_t address = operand.address(line0 + line(0), depth(0));
      std::array<uint16_t, 8> bits{};
      std::memcpy(bits.data(), leader.read_for_products(address, kChunkBytes), sizeof(bits));
      for (int i = 0; i < 8; ++i)
        values[static_cast<size_t>(line(i) * kDepth + depth(i))] =
            is_bf16 ? bf16_to_f32(bits[static_cast<size_t>(i)])
                    : f16_to_f32(bits[static_cast<size_t>(i)]);
    }
  return values;
}

void fence(Lane& lane, const Instruction&) { lane.order_sums(); }
void commit(Lane& lane, const Instruction&) { lane.commit_products(); }
void wait(Lane& lane, const Instruction& i) {
  lane.wait_for_products(static_cast<int64_t>(slot(lane, i, 0)));
}

}  // namespace

// Lane 4 g + t has of each 8 columns j: sums[4 j + p], row g + 8 (p / 2), column 8 j + 2 t + p % 2.
void warpgroup_product(std::span<Lane* const> lanes, const Instruction& i) {
  Lane& leader = *lanes[0];
  const bool is_bf16 = i.variant != 0;
  const int columns = static_cast<int>(i.sums.size()) * 2;
  const bool adds = (slot(leader, i, 2) & 1) != 0;
  if (slot(leader, i, 3) != 1 || slot(leader, i, 4) != 1)
    leader.fail("operands that are negated are not understood");
  for (Lane* const lane : lanes)
    for (int operand = 0; operand < 7; ++operand)
      if (slot(*lane, i, operand) != slot(leader, i, operand))
        lane->fail("operands of a product differ among the lanes of a warp");
  const int row0 = static_cast<int>(leader.number() / kLanes % 4) * kRows;
  const Operand of_a(leader, slot(leader, i, 0), slot(leader, i, 5) != 0);
  const Operand of_b(leader, slot(leader, i, 1), slot(leader, i, 6) != 0);
  const std::vector<float> a = read(leader, of_a, row0, kRows, is_bf16);
  const std::vector<float> b = read(leader, of_b, 0, columns, is_bf16);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    std::vector<float>& sums =
        lanes[lane]->begin_product(i, {slot(leader, i, 0), slot(leader, i, 1)}, adds);
    for (size_t e = 0; e < sums.size(); ++e) {
      const size_t row = lane / 4 + e % 4 / 2 * 8, column = e / 4 * 8 + lane % 4 * 2 + e % 2;
      double sum = static_cast<double>(sums[e]);
      for (size_t k = 0; k < kDepth; ++k)
        sum +=
            static_cast<double>(a[row * kDepth + k]) * static_cast<double>(b[column * kDepth + k]);
      sums[e] = static_cast<float>(sum);
    }
  }
}

// A product of a group that the warpgroup has not waited for reads until then: whoever writes there has to know that it is over.
const std::byte* Lane::read_for_products(uint64_t address, int64_t bytes) {
  const Access by{.thread = static_cast<uint32_t>(block_.warpgroup_number(number_) + 1),
                  .block_phase = groups_committed_};
  const std::byte* const from = reach(Space::shared, address, bytes, bytes, false, false, &by);
  for (auto i = static_cast<size_t>(address); i < address + static_cast<uint64_t>(bytes); ++i)
    if (const uint32_t owner = block_.unshown()[i]; owner != 0)
      fail(
          fmt::format("tensor cores read {:#x}, and thread {} has made no fence.proxy.async since "
                      "it wrote that",
                      address, owner - 1));
  return from;
}

void Lane::show_to_others(bool mbarriers_alone) {
  const Access now = access(false);
  std::erase_if(unshown_, [&](const std::pair<int64_t, int64_t>& written) {
    const auto [offset, bytes] = written;
    Mbarrier* const mbarrier = block_.mbarriers().find(offset);
    if (mbarriers_alone && mbarrier == nullptr) return false;
    for (int64_t i = offset; i < offset + bytes; ++i)
      if (uint32_t& owner = block_.unshown()[static_cast<size_t>(i)]; owner == number_ + 1) {
        owner = 0;
        // Who reads it has to come behind the fence.
        if (mbarrier != nullptr)
          mbarrier->shown = now;
        else
          block_.shared_history().write(i, 1, now, order());
      }
    return true;
  });
}

std::vector<float>& Lane::begin_product(const Instruction& i, std::array<uint64_t, 2> operands,
                                        bool adds) {
  PendingSums& sums = sums_[i.sums.front()];
  if (sums.products == 0) {
    if (!are_sums_ordered_) fail("no wgmma.fence since the sums could be touched");
    sums.values.clear();
    for (const int each : i.sums)
      sums.values.push_back(
          adds ? std::bit_cast<float>(static_cast<uint32_t>(slots_[static_cast<size_t>(each)]))
               : 0.0F);
  } else if (sums.instruction->sums != i.sums) {
    fail("a product adds to some sums of another that is not complete");
  } else if (!adds) {
    sums.values.assign(i.sums.size(), 0.0F);
  }
  for (const int each : i.sums) slots_[static_cast<size_t>(each)] = block_.noise();
  sums.instruction = &i;
  ++sums.products;
  for (const uint64_t each : {static_cast<uint64_t>(position_), operands[0], operands[1]})
    products_made_ = products_made_ * 0x9e3779b97f4a7c15 + each + 1;
  products_.back().push_back(i.sums.front());
  return sums.values;
}

// Products are made by the four warps together: none is over before all have begun it.
void Lane::wait_for_products(int64_t groups_left) {
  const auto over = static_cast<uint32_t>(std::max<int64_t>(groups_committed_ - groups_left, 0));
  if (!block_.have_committed(number_, over)) return sleep({.groups = over});
  uint32_t& known = clock_.of(block_.warpgroup_number(number_));
  known = std::max(known, over);
  while (static_cast<int64_t>(products_.size()) - 1 > groups_left) {
    for (const int first_sum : products_.front()) {
      PendingSums& sums = sums_.at(first_sum);
      if (--sums.products > 0) continue;
      are_sums_ordered_ = false;
      for (size_t e = 0; e < sums.values.size(); ++e)
        slots_[static_cast<size_t>(sums.instruction->sums[e])] =
            std::bit_cast<uint32_t>(sums.values[e]);
    }
    products_.erase(products_.begin());
  }
}

bool decode_warpgroup(Words words, Instruction& made) {
  if (words[0] != "wgmma" || words.size() < 2) return false;
  if (words[1] == "fence") return made.execute = fence, true;
  if (words[1] == "commit_group") return made.execute = commit, true;
  if (words[1] == "wait_group") return made.execute = wait, made.operands == 1;
  if (words[1] != "mma_async" || words.size() != 8 || made.operands != 7) return false;
  made.meeting = Meeting::warpgroup_product;
  made.variant = words[7] == "bf16" ? 1 : 0;
  return words[4] == fmt::format("m64n{}k16", made.sums.size() * 2) && words[5] == "f32" &&
         words[6] == words[7] && (words[7] == "bf16" || words[7] == "f16");
}

}  // namespace fullbore::ptx

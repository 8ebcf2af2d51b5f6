// cp.async.bulk.tensor: boxes of tensors, which come to shared memory of one or more blocks of a cluster beside the threads.
// Source: PTX ISA 9.7.8.24 (the copy) and 5.5 (tensors, boxes and swizzles).
#include <fmt/format.h>

#include <cstring>

#include "tests/support/ptx/cluster.h"
#include "tests/support/ptx/operands.h"
#include "tests/support/ptx/tensor_map.h"

namespace fullbore::ptx {
namespace {

constexpr uint64_t kRowBytes = 128;

/// Where a byte of a box lies from its begin on, if that is a multiple of the swizzle's period: chunks of 16 bytes change places within
/// 32, 64 or 128, as the rows of 128 say.
uint64_t swizzled(uint64_t plain, int swizzle) {
  return plain ^ (plain / kRowBytes & ((1U << swizzle) - 1)) << 4;
}

TensorMap read_map(Lane& lane, uint64_t address) {
  if (address >= kSharedWindow && address < kParameterWindow)
    lane.fail("a tensor map in neither parameters nor global memory");
  constexpr auto kBytes = static_cast<int64_t>(kTensorMapBytes);
  const std::byte* const bytes =
      lane.reach(Space::generic, address, kBytes, kTensorMapAlignment, false);
  const auto map = decode_tensor_map({bytes, kTensorMapBytes});
  if (!map) lane.fail(fmt::format("there is no tensor map at {:#x}", address));
  if (map->swizzle > 0 && map->box[0] * sizeof(uint16_t) != uint64_t{16} << map->swizzle)
    lane.fail("a box whose rows are shorter than its swizzle is not understood");
  return *map;
}

/// What of the box's shared memory a row of elements that lie one behind the other is.
void read_row(Lane& lane, const TensorMap& map, std::span<const int64_t> at, uint64_t row,
              std::vector<std::byte>& box) {
  const int64_t width = map.box[0];
  std::vector<uint16_t> elements(static_cast<size_t>(width),
                                 map.fill == 0 ? uint16_t{0} : uint16_t{0x7fff});
  bool is_inside = true;
  uint64_t address = map.address;
  for (size_t d = 1; d < at.size(); ++d) {
    is_inside &= at[d] >= 0 && at[d] < static_cast<int64_t>(map.extents[d]);
    address += static_cast<uint64_t>(at[d]) * map.strides[d];
  }
  const int64_t first = std::max<int64_t>(at[0], 0);
  const int64_t end = std::min(at[0] + width, static_cast<int64_t>(map.extents[0]));
  if (is_inside && first < end) {
    const int64_t bytes = (end - first) * map.element_bytes();
    std::memcpy(
        elements.data() + (first - at[0]),
        lane.reach(Space::global, address + static_cast<uint64_t>(first * map.element_bytes()),
                   bytes, map.element_bytes(), false),
        static_cast<size_t>(bytes));
  }
  const uint64_t row_bytes = elements.size() * sizeof(uint16_t);
  for (uint64_t chunk = 0; chunk < row_bytes; chunk += 16)
    std::memcpy(box.data() + swizzled(row * row_bytes + chunk, map.swizzle),
                elements.data() + chunk / sizeof(uint16_t), 16);
}

std::vector<std::byte> read_box(Lane& lane, const TensorMap& map, std::span<const int32_t> from) {
  std::vector<std::byte> box(static_cast<size_t>(map.box_bytes()));
  std::vector<int64_t> at(from.begin(), from.end());
  const uint64_t rows = static_cast<uint64_t>(map.box_bytes()) / (map.box[0] * sizeof(uint16_t));
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t rest = row;
    for (size_t d = 1; d < at.size(); ++d) {
      at[d] = from[d] + static_cast<int64_t>(rest % map.box[d]);
      rest /= map.box[d];
    }
    read_row(lane, map, at, row, box);
  }
  return box;
}

// to, map, coordinates, mbarrier {, blocks}.
void copy_box(Lane& lane, const Instruction& i) {
  std::vector<int32_t> at;
  for (int d = 0; d < i.elements; ++d) at.push_back(value<int32_t>(lane, i, 2 + d));
  const bool is_multicast = i.variant != 0;
  const uint32_t ranks = is_multicast ? value<uint16_t>(lane, i, 3 + i.elements) : 0;
  if (is_multicast && (ranks == 0 || ranks >> lane.block().cluster().size() != 0))
    lane.fail(fmt::format("blocks {:#b} of a cluster of {}", ranks, lane.block().cluster().size()));
  lane.copy_box(value<uint32_t>(lane, i, 0) + static_cast<uint64_t>(i.offset),
                value<uint64_t>(lane, i, 1) + static_cast<uint64_t>(i.second_offset), at,
                value<uint32_t>(lane, i, 2 + i.elements), ranks);
}

}  // namespace

void Lane::copy_box(uint64_t to, uint64_t map, std::span<const int32_t> at, uint64_t mbarrier,
                    uint32_t ranks) {
  const TensorMap of = read_map(*this, map);
  if (static_cast<size_t>(of.rank) != at.size())
    fail(fmt::format("{} coordinates of a tensor of {} dimensions", at.size(), of.rank));
  if (of.box_bytes() > kMostSharedBytes)
    fail(fmt::format("a box of {} bytes, of {} at most", of.box_bytes(), kMostSharedBytes));
  const Place first = place_of(to), first_mbarrier = place_of(mbarrier);
  if (first.block != first_mbarrier.block) fail("a box and its mbarrier are in different blocks");
  const int64_t period = static_cast<int64_t>(kRowBytes) << of.swizzle;
  if (first.offset % period != 0)
    fail(fmt::format("the box's place {:#x} is no multiple of {}", to, period));
  const auto bytes = std::make_shared<const std::vector<std::byte>>(read_box(*this, of, at));
  if (ranks == 0) ranks = 1U << first.block->rank();
  for (uint32_t rank = 0; rank < block_.cluster().size(); ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    // That a block has ended is said by its number.
    const Place there{&block_.cluster().block(rank), first_mbarrier.offset};
    if (there.block->has_ended())
      fail(fmt::format("a box for block {}, which has ended", there.block->index()));
    Mbarrier& its = mbarrier_at(there, mbarrier);
    if (its.shown.thread == 0 || !knows(its.shown))
      fail(
          fmt::format("a box for the mbarrier at {:#x} of block {}, and there is no fence behind "
                      "its mbarrier.init",
                      its.offset, there.block->index()));
    begin_write_of_copy(*there.block, first.offset, static_cast<int64_t>(bytes->size()));
    block_.cluster().send(
        {.to = there.block, .offset = first.offset, .bytes = bytes, .mbarrier = &its});
  }
}

// From now on until it is complete the bytes may be written at any time.
void Lane::begin_write_of_copy(Block& block, int64_t offset, int64_t bytes) {
  const auto in_block = [&] { return fmt::format("{:#x} of block {}", offset, block.index()); };
  if (static_cast<size_t>(offset + bytes) > block.shared().size())
    fail(fmt::format("a box of {} bytes at {} is not within the {} bytes of shared memory", bytes,
                     in_block(), block.shared().size()));
  if (block.mbarriers().overlap(offset, bytes))
    fail(fmt::format("a box at {} is brought over an mbarrier", in_block()));
  for (auto i = static_cast<size_t>(offset); i < static_cast<size_t>(offset + bytes); ++i) {
    if (block.pending()[i] != 0)
      fail(fmt::format("a box at {} is brought over what another copy brings", in_block()));
    if (const uint32_t owner = block.unshown()[i]; owner != 0)
      fail(
          fmt::format("a box at {}, and thread {} has made no fence.proxy.async since it wrote "
                      "there",
                      in_block(), owner - 1));
    block.pending()[i] = Block::kBox;
  }
  if (const auto earlier = block.shared_history().write(offset, bytes, access(false), order()))
    fail(
        fmt::format("a box at {} is brought over what {} has read or written with nothing in "
                    "between",
                    in_block(), block_.name_of(*earlier)));
}

bool decode_tensor_copy(Words words, Instruction& made) {
  if (words.size() < 9 || words[0] != "cp" || words[1] != "async" || words[2] != "bulk" ||
      words[3] != "tensor")
    return false;
  if (words[4].size() != 2 || words[4][1] != 'd') return false;
  made.elements = words[4][0] - '0';
  const bool is_multicast = words.back() == "multicast::cluster";
  made.variant = is_multicast ? 1 : 0;
  made.execute = copy_box;
  const size_t barrier = words.size() - (is_multicast ? 2 : 1);
  return made.elements >= 1 && made.elements <= 5 && words[5] == "shared::cluster" &&
         words[6] == "global" && words[7] == "tile" && barrier == 8 &&
         words[8] == "mbarrier::complete_tx::bytes" &&
         made.operands == 3 + made.elements + made.variant;
}

}  // namespace fullbore::ptx

// Whatever way the bytes take to the disk, they are the same, and so is their hash.
#include "fullbore/ckpt/hashed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/tensor_memory.h"
#include "tests/ckpt/direct_disk.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using testing::DirectDisk;
using Directly = DirectDisk::Directly;
using ::testing::HasSubstr;

constexpr size_t kMebi = size_t{1} << 20;
constexpr Directly kAllWays[] = {Directly::kGranted, Directly::kRefused, Directly::kPretends};

/// Random bytes on pages of their own.
class Memory {
 public:
  explicit Memory(size_t bytes) : memory_(allocate_tensor_memory(std::max(bytes, 4 * kMebi))) {
    PhiloxStream draws(3);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
      const uint64_t bits = draws.below(UINT64_MAX);
      std::memcpy(memory_.get() + i, &bits, sizeof bits);
    }
    bytes_ = {memory_.get(), bytes};
  }
  std::string_view all() const { return bytes_; }
  std::string_view part(size_t begin, size_t count) const { return bytes_.substr(begin, count); }

 private:
  TensorMemory memory_;
  std::string_view bytes_;
};

/// Writes the pieces one after another and holds the file to them.
void expect_written(const std::vector<std::string_view>& pieces, FileSystem& files,
                    const std::string& path) {
  HashedFile file(path, files);
  std::string all;
  for (const std::string_view piece : pieces) {
    ASSERT_TRUE(file.write(piece).ok());
    all += piece;
  }
  const ManifestEntry entry = file.finish().take_or_throw();
  EXPECT_EQ(entry.bytes, all.size());
  EXPECT_EQ(entry.hash, hash_text(all));
  EXPECT_TRUE(read_file(path, files).take_or_throw() == all);
}

TEST(HashedFile, PagesThatMatchGoStraightFromTheirMemory) {
  const Memory memory(5 * kMebi + 123);
  const std::string header(kDirectAlignment, 'h');
  DirectDisk disk(Directly::kGranted);
  disk.watch(memory.all());
  expect_written({header, memory.all()}, disk, "x");
  EXPECT_EQ(disk.watched_bytes(), 5 * kMebi);
  EXPECT_EQ(disk.direct_bytes(), 5 * kMebi + header.size());
  EXPECT_EQ(disk.misfits(), 0);
}

// A header of any length, and data that lie in their page as they will in the file's.
TEST(HashedFile, APageBegunIsFilledFirst) {
  const Memory memory(3 * kMebi);
  const std::string header(1000, 'h');
  DirectDisk disk(Directly::kGranted);
  disk.watch(memory.all());
  expect_written({header, memory.part(1000, 7), memory.part(1007, 2 * kMebi), memory.part(17, 10)},
                 disk, "x");
  EXPECT_EQ(disk.watched_bytes(), 2 * kMebi - kDirectAlignment);
  EXPECT_EQ(disk.misfits(), 0);
}

TEST(HashedFile, WhatDoesNotMatchGoesByWayOfTheBuffer) {
  const Memory memory(3 * kMebi);
  const std::string header(8, 'h');
  DirectDisk disk(Directly::kGranted);
  disk.watch(memory.all());
  expect_written({header, memory.all()}, disk, "x");
  EXPECT_EQ(disk.watched_bytes(), 0U);
  EXPECT_EQ(disk.direct_bytes(), 3 * kMebi);
  EXPECT_EQ(disk.misfits(), 0);
}

TEST(HashedFile, WithoutDirectWritingAnyAddressWillDo) {
  const Memory memory(3 * kMebi);
  const std::string header(8, 'h');
  for (const Directly directly : {Directly::kRefused, Directly::kPretends}) {
    DirectDisk disk(directly);
    disk.watch(memory.all());
    expect_written({header, memory.part(1, 2 * kMebi)}, disk, "x");
    EXPECT_EQ(disk.direct_bytes(), 0U);
    // The page of the header is filled from there. Where nothing is known yet the buffer is tried.
    const size_t buffered = directly == Directly::kRefused ? kDirectAlignment : kMebi;
    EXPECT_EQ(disk.watched_bytes(), 2 * kMebi - buffered);
  }
}

TEST(HashedFile, SmallFilesAreWrittenAtOnceAndNotDirectly) {
  const Memory memory(kMebi);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{60'000}}) {
    DirectDisk disk(Directly::kGranted);
    const int before = disk.operations();
    expect_written({memory.part(0, bytes / 2), {}, memory.part(bytes / 2, bytes - bytes / 2)}, disk,
                   "x");
    EXPECT_EQ(disk.direct_bytes(), 0U);
    EXPECT_EQ(disk.operations() - before, bytes == 0 ? 2 : 3) << "created, written, synced";
  }
}

// Pieces of all sizes from all places, on disks of all kinds, cut short now and then.
TEST(HashedFile, AnySequenceOfPiecesIsWhatTheFileHolds) {
  const Memory memory(6 * kMebi);
  PhiloxStream draws(11);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string_view> pieces;
    size_t end = 0;
    for (uint64_t count = draws.below(12); count > 0; --count) {
      const size_t most = size_t{1} << draws.below(22);
      const size_t bytes = draws.below(4) == 0 ? most / 4096 * 4096 : draws.below(most + 1);
      // Often where the last one ended, or where the place in its page is the file's.
      size_t begin = draws.below(memory.all().size() - bytes);
      if (draws.below(2) == 0) begin = begin / 4096 * 4096 + end % 4096;
      pieces.push_back(memory.part(begin, bytes));
      end += pieces.back().size();
    }
    for (const Directly directly : kAllWays) {
      DirectDisk disk(directly);
      if (round % 3 == 0) disk.cut_next_write(1 + draws.below(2 * kMebi));
      if (round % 3 == 1) disk.cut_next_write((1 + draws.below(200)) * 4096);
      expect_written(pieces, disk, "x");
      EXPECT_EQ(disk.misfits(), 0) << "round " << round;
    }
  }
}

TEST(HashedFile, AFullDiskIsTold) {
  const Memory memory(4 * kMebi);
  const std::string header(kDirectAlignment, 'h');
  for (const Directly directly : kAllWays) {
    for (const uint64_t room : {uint64_t{0}, uint64_t{100}, uint64_t{4096}, uint64_t{kMebi},
                                uint64_t{2 * kMebi + 5000}, uint64_t{4 * kMebi + 4000}}) {
      DirectDisk disk(directly);
      disk.limit(room);
      HashedFile file("x", disk);
      Status status = file.write(header);
      if (status.ok()) status = file.write(memory.all());
      ASSERT_FALSE(status.ok()) << room;
      EXPECT_THAT(status.error(), HasSubstr("cannot write x: No space")) << room;
    }
  }
}

// With the file system that the tests run on, whatever it makes of O_DIRECT.
TEST(HashedFile, TheSystemsFilesHoldTheSame) {
  const testing::ScratchFolder folder;
  const Memory memory(5 * kMebi + 77);
  const std::string header(kDirectAlignment, 'h');
  expect_written({header, memory.all()}, system_files(), folder / "straight");
  expect_written({memory.part(0, 5), memory.all()}, system_files(), folder / "buffered");
  expect_written({memory.part(8, 3 * kMebi)}, system_files(), folder / "askew");
}

TEST(HashedFile, AFileThatIsThereIsNotTouched) {
  const testing::ScratchFolder folder;
  const std::string path = folder.put("x", "old");
  HashedFile file(path, system_files());
  EXPECT_THAT(file.write("new").error(), HasSubstr("cannot create " + path + ": File exists"));
  EXPECT_FALSE(file.finish().ok());
  EXPECT_EQ(read_file(path).take_or_throw(), "old");
}

}  // namespace
}  // namespace fullbore

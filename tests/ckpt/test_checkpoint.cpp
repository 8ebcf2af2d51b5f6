#include "fullbore/ckpt/checkpoint.h"

#include <cerrno>
#include <cstdlib>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/ckpt/checksum.h"
#include "tests/ckpt/checkpoint_fixture.h"
#include "tests/support/faulty_files.h"

namespace fullbore {
namespace {

using testing::FaultyFiles;
using ::testing::HasSubstr;
using testing::kAllLosses;
using testing::kExampleMetadata;
using testing::Loss;
using testing::TensorSet;

class Checkpoints : public ::testing::Test {
 protected:
  testing::ScratchFolder folder_;
  const std::string path_ = folder_ / "last.safetensors";
  const TensorSet old_{1};
  const TensorSet new_{2};
  FaultyFiles healthy_;  // without a fault: the system's files less the waiting for the disk
};

TEST_F(Checkpoints, WhatIsWrittenIsReadBack) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const Checkpoint checkpoint = read_checkpoint(path_).take_or_throw();
  EXPECT_TRUE(old_.is_in(checkpoint));
  EXPECT_FALSE(new_.is_in(checkpoint));
  for (const auto& [key, value] : kExampleMetadata) EXPECT_EQ(checkpoint.metadata().at(key), value);
  for (const StoredTensor& tensor : checkpoint.tensors())
    EXPECT_EQ(tensor.begin % static_cast<uint64_t>(dtype_bytes(tensor.type.dtype)), 0U);
  EXPECT_EQ(checkpoint.find("none"), nullptr);
  EXPECT_EQ(folder_.count(), 1) << "a temporary file stayed behind";
}

TEST_F(Checkpoints, NoTensorsAndNoMetadataAreACheckpointToo) {
  ASSERT_TRUE(write_checkpoint(path_, {}, {}).ok());
  EXPECT_TRUE(read_checkpoint(path_).take_or_throw().tensors().empty());
}

TEST_F(Checkpoints, TheSameTensorsGiveTheSameBytes) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const std::string first = read_file(path_).value();
  ASSERT_TRUE(write_checkpoint(path_, TensorSet(1).tensors(), kExampleMetadata).ok());
  EXPECT_EQ(read_file(path_).value(), first);
  // The format's own promises, read without our reader: length, padding, alignment.
  uint64_t length = 0;
  std::memcpy(&length, first.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(first[8], '{');
}

TEST_F(Checkpoints, AfterAnyCrashTheOldOrTheNewIsWhole) {
  for (const Loss loss : kAllLosses) {
    int outcomes[2] = {0, 0};
    for (int operation = 0;; ++operation) {
      folder_.clear();
      ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata, healthy_).ok());
      FaultyFiles files;
      files.kill_at(operation);
      const bool acknowledged =
          write_checkpoint(path_, new_.tensors(), kExampleMetadata, files).ok();
      const bool finished = !files.dead();
      files.cut_power(loss);
      const Result<Checkpoint> found = read_checkpoint(path_);
      ASSERT_TRUE(found.ok()) << "killed in operation " << operation << ": " << found.error();
      const bool is_new = new_.is_in(found.value());
      ASSERT_TRUE(is_new || (!acknowledged && old_.is_in(found.value())))
          << "killed in operation " << operation;
      ++outcomes[is_new ? 1 : 0];
      // The next start clears up what the dead left.
      ASSERT_TRUE(write_checkpoint(path_, new_.tensors(), kExampleMetadata, healthy_).ok());
      EXPECT_EQ(folder_.count(), 1);
      if (finished) break;
    }
    EXPECT_GE(outcomes[0], 10) << "a create, a header, tensors, a sync";
    EXPECT_GE(outcomes[1], 1);
  }
}

TEST_F(Checkpoints, AnErrorInAnyOperationIsReportedAndLeavesTheOldOne) {
  for (const int reason : {ENOSPC, EIO, EDQUOT}) {
    for (int operation = 0;; ++operation) {
      folder_.clear();
      ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata, healthy_).ok());
      FaultyFiles files;
      files.fail_at(operation, reason);
      const Status status = write_checkpoint(path_, new_.tensors(), kExampleMetadata, files);
      if (files.operations() <= operation) break;
      EXPECT_EQ(folder_.count(), 1) << "a temporary file stayed behind";
      const Checkpoint found = read_checkpoint(path_).take_or_throw();
      if (status.ok()) {  // closing what is synced and in its place
        EXPECT_TRUE(new_.is_in(found));
        continue;
      }
      EXPECT_THAT(status.error(), HasSubstr(path_));
      EXPECT_THAT(status.error(), HasSubstr(std::strerror(reason)));
      EXPECT_TRUE(old_.is_in(found) || new_.is_in(found));
    }
  }
}

TEST_F(Checkpoints, ShortWritesAreContinued) {
  FaultyFiles files;
  files.limit_writes(5);
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata, files).ok());
  EXPECT_TRUE(old_.is_in(read_checkpoint(path_).take_or_throw()));
}

TEST_F(Checkpoints, AFolderThatIsMissingIsNamed) {
  const Status status = write_checkpoint(folder_ / "no/x.safetensors", old_.tensors(), {});
  EXPECT_THAT(status.error(), HasSubstr("cannot create " + (folder_ / "no/x.safetensors")));
  EXPECT_THAT(status.error(), HasSubstr("No such file or directory"));
}

TEST_F(Checkpoints, TextsThatAreNotUtf8AreRefusedBeforeAnythingIsWritten) {
  EXPECT_THAT(write_checkpoint(path_, old_.tensors(), {{"config", "\xFF"}}).error(),
              HasSubstr("not UTF-8"));
  EXPECT_EQ(folder_.count(), 0);
}

TEST_F(Checkpoints, TruncationAtEveryOffsetIsSeen) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const std::string whole = read_file(path_).value();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string torn = folder_.put("torn", whole.substr(0, size));
    for (const Verify verify : {Verify::kStructure, Verify::kEverything}) {
      const Result<Checkpoint> result = read_checkpoint(torn, verify);
      ASSERT_FALSE(result.ok()) << size;
      EXPECT_THAT(result.error(), HasSubstr(torn + ": ")) << size;
    }
  }
  EXPECT_FALSE(read_checkpoint(folder_.put("longer", whole + "x")).ok());
}

TEST_F(Checkpoints, EveryFlippedBitIsSeen) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const std::string whole = read_file(path_).value();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] ^= static_cast<char>(1U << bit % 8);
    const Result<Checkpoint> result = read_checkpoint(folder_.put("flipped", flipped));
    ASSERT_FALSE(result.ok()) << "bit " << bit;
    EXPECT_THAT(result.error(), HasSubstr(folder_ / "flipped"));
  }
}

TEST_F(Checkpoints, DamageIsLocated) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const std::string whole = read_file(path_).value();
  uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  const auto error = [&](size_t offset, char value) {
    std::string bytes = whole;
    bytes[offset] = value;
    return read_checkpoint(folder_.put("bad", bytes)).error();
  };
  EXPECT_THAT(error(whole.size() - 1, '~'),
              HasSubstr(fmt::format("bad: bytes {}-{}: the data's checksum is ", 8 + length,
                                    whole.size() - 1)));
  EXPECT_THAT(error(whole.find("\"12\"") + 1, '9'),
              HasSubstr(fmt::format("bad: bytes 0-{}: the header's checksum is ", 7 + length)));
  EXPECT_THAT(error(7, '\x7F'), HasSubstr("bad: byte 0: a header of "));
  EXPECT_THAT(error(9, '!'), HasSubstr("bad: byte 9: the header's JSON is malformed near "));
}

TEST_F(Checkpoints, RandomDamageNeverDoesWorseThanFail) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const std::string whole = read_file(path_).value();
  PhiloxStream random(99);
  for (int i = 0; i < 3000; ++i) {
    std::string noisy = whole;
    for (uint64_t edits = 1 + random.below(6); edits > 0; --edits) {
      const size_t at = random.below(noisy.size());
      switch (random.below(4)) {
        case 0: noisy[at] = static_cast<char>(random.below(256)); break;
        case 1: noisy.erase(at, 1 + random.below(20)); break;
        case 2: noisy.insert(at, noisy.substr(random.below(noisy.size()), random.below(30))); break;
        default: noisy.insert(at, 1, "[]{}\",:0123456789-e."[random.below(20)]); break;
      }
      if (noisy.empty()) noisy = "x";
    }
    if (noisy == whole) continue;
    const std::string path = folder_.put("noisy", noisy);
    EXPECT_FALSE(read_checkpoint(path).ok());
    const Result<Checkpoint> structure = read_checkpoint(path, Verify::kStructure);
    if (!structure.ok()) continue;
    for (const StoredTensor& tensor : structure.value().tensors()) {
      std::vector<char> bytes(static_cast<size_t>(tensor.bytes()) + 1);
      EXPECT_TRUE(structure.value().read(tensor, bytes.data()).ok());
    }
  }
}

TEST_F(Checkpoints, AFileThatShrinksWhileInUseIsAFailure) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), kExampleMetadata).ok());
  const Checkpoint checkpoint = read_checkpoint(path_).take_or_throw();
  const StoredTensor& last = checkpoint.tensors().back();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  std::vector<char> bytes(static_cast<size_t>(last.bytes()));
  EXPECT_THAT(checkpoint.read(last, bytes.data()).error(), HasSubstr(path_ + " ends at byte "));
}

TEST_F(Checkpoints, AFormatFromTheFutureIsNamed) {
  ASSERT_TRUE(write_checkpoint(path_, {}, {}).ok());
  std::string json = read_file(path_).value().substr(8);
  const std::string checksum =
      read_checkpoint(path_).value().metadata().at(std::string(kHeaderChecksumKey));
  const auto replace = [&](const std::string& from, const std::string& to) {
    json.replace(json.find(from), from.size(), to);
  };
  replace("\"fullbore.format\":\"1\"", "\"fullbore.format\":\"2\"");
  replace(checksum, std::string(kZeroChecksum));
  replace(std::string(kZeroChecksum), hash_hex(header_checksum(json)));
  const uint64_t length = json.size();
  const std::string bytes = std::string(reinterpret_cast<const char*>(&length), 8) + json;
  EXPECT_THAT(read_checkpoint(folder_.put("future", bytes)).error(),
              HasSubstr("format version 2 is not known; 1 is"));
}

TEST_F(Checkpoints, WhatIsNoCheckpointIsRefused) {
  EXPECT_THAT(read_checkpoint(folder_ / "none").error(), HasSubstr("No such file or directory"));
  EXPECT_THAT(read_checkpoint(folder_.path()).error(), HasSubstr("is a folder, not a file"));
  EXPECT_THAT(read_checkpoint("/dev/zero").error(), HasSubstr("is not a regular file"));
  EXPECT_EQ(
      read_checkpoint(folder_.put("empty", "")).error(),
      (folder_ / "empty") + ": 0 bytes long; a checkpoint begins with 8 bytes of header length");
  EXPECT_THAT(read_checkpoint(folder_.put("text", "To be, or not to be")).error(),
              HasSubstr("text: byte 0: a header of "));
}

TEST_F(Checkpoints, RestoreFillsEverySlot) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), {}).ok());
  const Checkpoint checkpoint = read_checkpoint(path_).take_or_throw();
  std::vector<std::vector<char>> memory;
  std::vector<TensorSlot> slots;
  for (const NamedTensor& tensor : old_.tensors()) {
    memory.emplace_back(static_cast<size_t>(tensor.type.bytes()) + 1, '\0');
    slots.push_back({tensor.name, tensor.type, memory.back().data()});
  }
  ASSERT_TRUE(restore(checkpoint, slots).ok());
  for (size_t i = 0; i < slots.size(); ++i)
    EXPECT_EQ(std::memcmp(slots[i].data, old_.tensors()[i].data, memory[i].size() - 1), 0);
}

TEST_F(Checkpoints, RestoreOfAnotherModelTouchesNothingAndSaysWhatDiffers) {
  ASSERT_TRUE(write_checkpoint(path_, old_.tensors(), {}).ok());
  const Checkpoint checkpoint = read_checkpoint(path_).take_or_throw();
  float scalar = 7;
  double other = 7;
  const TensorSlot good{"scalar", {DType::f32, Shape{}}, &scalar};
  const TensorSlot larger[] = {good, {"all.f32", {DType::f32, Shape{4, 3}}, nullptr}};
  EXPECT_EQ(restore(checkpoint, larger, UnknownTensors::kIgnore).error(),
            path_ + ": a checkpoint of another model: 'all.f32' is f32[2,3] in it, f32[4,3] here");
  const TensorSlot missing[] = {good, {"more", {DType::f64, Shape{1}}, &other}};
  EXPECT_EQ(restore(checkpoint, missing, UnknownTensors::kIgnore).error(),
            path_ + ": a checkpoint of another model: 'more' f64[1] is not in it");
  const TensorSlot few[] = {good};
  EXPECT_THAT(restore(checkpoint, few).error(), HasSubstr("is in it alone"));
  EXPECT_THAT(restore(checkpoint, few).error(), HasSubstr("; and 7 more"));
  EXPECT_EQ(scalar, 7);
  EXPECT_TRUE(restore(checkpoint, few, UnknownTensors::kIgnore).ok());
  EXPECT_NE(scalar, 7);
}

}  // namespace
}  // namespace fullbore

#include "fullbore/ckpt/checkpoint_folder.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/ckpt/packed_file.h"
#include "tests/ckpt/checkpoint_fixture.h"
#include "tests/ckpt/direct_disk.h"
#include "tests/support/memory_disk.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::Contents;
using ::testing::HasSubstr;
using testing::MemoryDisk;
using testing::TensorSet;

class Folders : public ::testing::Test {
 protected:
  std::string write(bool packed = false) {
    contents_ = Contents(7, packed);
    EXPECT_TRUE(write_checkpoint_folder("c", contents_.get(), disk_).ok());
    return "c";
  }
  /// Opened and verified; the reason why not otherwise.
  std::string refusal(const std::string& path) {
    const Result<CheckpointFolder> folder = open_checkpoint_folder(path, disk_);
    if (!folder.ok()) return folder.error();
    const Status status = folder.value().verify();
    if (!status.ok()) return status.error();
    return contents_.is_in(folder.value()) ? "" : "other contents";
  }
  void put(const std::string& path, const std::string& bytes) {
    disk_.remove(path);
    const int file = disk_.create(path);
    disk_.write(file, bytes.data(), bytes.size());
    disk_.close(file);
  }

  MemoryDisk disk_;
  Contents contents_{7};
};

TEST_F(Folders, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(refusal(write()), "");
  const CheckpointFolder folder = open_checkpoint_folder("c", disk_).take_or_throw();
  EXPECT_THAT(folder.groups(), ::testing::UnorderedElementsAre("weights", "optimizer"));
  EXPECT_EQ(folder.manifest().size(), 6U);
  EXPECT_THAT(folder.text("none.json").error(), HasSubstr("c: the manifest knows no none.json"));
  EXPECT_THAT(folder.group("none").error(), HasSubstr("knows no none.safetensors"));
}

TEST_F(Folders, PackedOnesHoldTheSame) { EXPECT_EQ(refusal(write(/*packed=*/true)), ""); }

// Every bit of every file, the manifest's too.
TEST_F(Folders, EveryFlippedBitIsSeen) {
  for (const bool packed : {false, true}) {
    disk_ = MemoryDisk();
    write(packed);
    size_t bits = 0;
    for (const std::string& name : disk_.list("c")) {
      const std::string path = "c/" + name;
      const std::string whole = read_file(path, disk_).value();
      for (size_t bit = 0; bit < whole.size() * 8; ++bit, ++bits) {
        std::string flipped = whole;
        flipped[bit / 8] ^= static_cast<char>(1U << bit % 8);
        put(path, flipped);
        const std::string reason = refusal("c");
        ASSERT_NE(reason, "") << path << " bit " << bit;
        ASSERT_THAT(reason, HasSubstr(path));
      }
      put(path, whole);
    }
    EXPECT_GT(bits, 15000U);
    EXPECT_EQ(refusal("c"), "");
  }
}

TEST_F(Folders, TruncationAtEveryOffsetIsSeen) {
  write();
  for (const std::string& name : disk_.list("c")) {
    const std::string whole = read_file("c/" + name, disk_).value();
    for (size_t size = 0; size < whole.size(); ++size) {
      put("c/" + name, whole.substr(0, size));
      ASSERT_NE(refusal("c"), "") << name << " at " << size;
    }
    put("c/" + name, whole + "x");
    EXPECT_NE(refusal("c"), "") << name;
    disk_.remove("c/" + name);
    EXPECT_THAT(refusal("c"), HasSubstr("No such file or directory"));
    put("c/" + name, whole);
  }
}

// A dense sample of the bits of a quarter of a megabyte, and truncation at every 4 KiB.
TEST_F(Folders, DamageToALargeOneIsSeen) {
  std::vector<float> data(1 << 16);
  PhiloxStream draws(5);
  for (float& x : data) x = static_cast<float>(draws.uniform(-1, 1));
  CheckpointContents contents;
  contents.groups = {{"weights", {{"w", {DType::f32, {1 << 16}}, data.data()}}, false}};
  ASSERT_TRUE(write_checkpoint_folder("large", contents, disk_).ok());
  const CheckpointFolder folder = open_checkpoint_folder("large", disk_).take_or_throw();
  const std::string path = "large/weights.safetensors";
  const std::string whole = read_file(path, disk_).value();
  for (int i = 0; i < 500; ++i) {
    std::string flipped = whole;
    flipped[draws.below(whole.size())] ^= static_cast<char>(1U << draws.below(8));
    put(path, flipped);
    ASSERT_FALSE(folder.verify().ok());
  }
  for (size_t size = 0; size < whole.size(); size += 4096) {
    put(path, whole.substr(0, size));
    ASSERT_FALSE(folder.verify().ok()) << size;
  }
  put(path, whole);
  EXPECT_TRUE(folder.verify().ok());
}

/// Tensors side by side, as a snapshot has them; sizes in bytes.
std::vector<NamedTensor> side_by_side(const char* memory, const std::vector<int64_t>& sizes) {
  std::vector<NamedTensor> tensors;
  for (const int64_t size : sizes) {
    tensors.push_back({fmt::format("t{}", tensors.size()), {DType::u8, Shape{size}}, memory});
    memory += size;
  }
  return tensors;
}

// Sizes that are no multiple of anything, tiny and empty ones: the data begin on a page and go to the disk
// from where they are, in calls that know no tensor.
TEST_F(Folders, WhatLiesTogetherIsWrittenFromWhereItIs) {
  constexpr int64_t kBytes = 3'000'000;
  const TensorMemory memory = allocate_tensor_memory(4 << 20);
  PhiloxStream draws(6);
  for (int64_t i = 0; i < kBytes; ++i) memory.get()[i] = static_cast<char>(draws.below(256));
  std::vector<int64_t> sizes = {1, 0, 1'000'003, 4096, 0};
  for (int i = 0; i < 900; ++i) sizes.push_back(i);
  sizes.push_back(kBytes - std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  CheckpointContents contents;
  contents.groups = {{"weights", side_by_side(memory.get(), sizes)}};
  testing::DirectDisk disk(testing::DirectDisk::Directly::kGranted);
  disk.watch({memory.get(), kBytes});
  const int before = disk.operations();
  ASSERT_TRUE(write_checkpoint_folder("c", contents, disk).ok());
  EXPECT_EQ(disk.watched_bytes(), kBytes / 4096 * 4096);
  EXPECT_EQ(disk.misfits(), 0);
  EXPECT_LT(disk.operations() - before, 20);
  const CheckpointFolder folder = open_checkpoint_folder("c", disk).take_or_throw();
  EXPECT_TRUE(folder.verify().ok());
  const Checkpoint weights = folder.group("weights").take_or_throw();
  std::vector<char> bytes(kBytes);
  for (const NamedTensor& tensor : contents.groups[0].tensors) {
    const StoredTensor* const stored = weights.find(tensor.name);
    ASSERT_TRUE(stored != nullptr && stored->type == tensor.type);
    ASSERT_TRUE(weights.read(*stored, bytes.data()).ok());
    ASSERT_EQ(std::memcmp(bytes.data(), tensor.data, stored->bytes()), 0) << tensor.name;
  }
}

TEST_F(Folders, DataBeginOnAPageWhereThereAreMany) {
  const auto place = [&](int64_t bytes) {
    const std::vector<char> memory(static_cast<size_t>(bytes));
    CheckpointContents contents;
    contents.groups = {{"weights", side_by_side(memory.data(), {bytes / 2, bytes - bytes / 2})}};
    disk_ = MemoryDisk();
    EXPECT_TRUE(write_checkpoint_folder("c", contents, disk_).ok());
    return read_file("c/weights.safetensors", disk_).take_or_throw().size() -
           static_cast<size_t>(bytes);
  };
  EXPECT_EQ(place(1 << 20), kDirectAlignment);
  EXPECT_EQ(place((1 << 22) + 1), kDirectAlignment);
  EXPECT_LT(place((1 << 20) - 1), 200U) << "small ones stay small";
  EXPECT_EQ(place(1000) % 8, 0U);
}

TEST_F(Folders, ManifestsOfOthersAreRefused) {
  const Manifest manifest = {{"a.json", {3, 4}}};
  const std::string text = encode_manifest(manifest);
  EXPECT_EQ(parse_manifest(text).take_or_throw(), manifest);
  // Changed by one who knows the checksum.
  const auto signed_error = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const size_t place = changed.rfind("\"\n}") - 16;
    changed.replace(place, 16, 16, '0');
    changed.replace(place, 16, hash_hex(hash_text(changed)));
    return parse_manifest(changed).error();
  };
  EXPECT_THAT(signed_error("\"format\": 1", "\"format\": 2"), HasSubstr("format 2 is not known"));
  EXPECT_THAT(signed_error("a.json", "../a.json"), HasSubstr("the entry '../a.json' is malformed"));
  EXPECT_THAT(signed_error("\"bytes\": 3", "\"bytes\": -3"), HasSubstr("'a.json' is malformed"));
  EXPECT_THAT(parse_manifest("").error(), HasSubstr("0 bytes that do not end like a manifest"));
}

TEST(PackedFile, UnpacksAnyRangeAndRefusesDamage) {
  const testing::ScratchFolder folder;
  std::string bytes(2'500'000, '\0');
  PhiloxStream draws(9);
  for (size_t i = 0; i < bytes.size(); i += 4)
    bytes[i] = static_cast<char>(draws.below(256));  // one byte of four is random, as in weights
  std::string packed;
  Packer packer([&](std::string_view piece) {
    packed += piece;
    return success();
  });
  ASSERT_TRUE(packer.write(std::string_view(bytes).substr(0, 7), 1).ok());
  ASSERT_TRUE(packer.write(std::string_view(bytes).substr(7, 2'400'000), 4).ok());
  ASSERT_TRUE(packer.write(std::string_view(bytes).substr(2'400'007), 1).ok());
  EXPECT_LT(packed.size(), bytes.size() / 3);
  const std::string path = folder.put("x.fbz", packed);
  const auto source = open_byte_source(path).take_or_throw();
  ASSERT_EQ(source->bytes(), bytes.size());
  for (int i = 0; i < 200; ++i) {
    const size_t begin = draws.below(bytes.size());
    std::string part(draws.below(bytes.size() - begin + 1) % 1'300'000, '?');
    ASSERT_TRUE(source->read_exactly(begin, part.data(), part.size()).ok());
    ASSERT_TRUE(part == bytes.substr(begin, part.size()));
  }
  char one = 0;
  EXPECT_THAT(source->read_exactly(bytes.size(), &one, 1).error(), HasSubstr("ends at byte"));
  // Whatever the bytes: refused, or read with a Failure at worst.
  for (int i = 0; i < 300; ++i) {
    std::string noisy = packed;
    noisy[draws.below(i % 2 == 0 ? 64 : noisy.size())] ^= static_cast<char>(1 + draws.below(255));
    if (i % 5 == 0) noisy.resize(draws.below(noisy.size()));
    const auto damaged = open_byte_source(folder.put("y.fbz", noisy));
    if (!damaged.ok()) continue;
    std::string all(damaged.value()->bytes(), '?');
    (void)damaged.value()->read_exactly(0, all.data(), all.size()).ok();
  }
}

TEST_F(Folders, TheRecordComesBackWhole) {
  contents_.record = {.step = 123'456'789'012,
                      .data_position = std::numeric_limits<uint64_t>::max(),
                      .seed = std::numeric_limits<uint64_t>::max() - 1,
                      .identity = {{"data", "x \u00E9"}, {"model", ""}},
                      .config = "{\"a\": \"\u00E9\\n\"}",
                      .tokenizer = R"({"characters":"\n\"a"})",
                      .metrics = {{"loss", 0.1 + 0.2},
                                  {"best", std::numeric_limits<double>::infinity()},
                                  {"tiny", 5e-324}}};
  ASSERT_TRUE(write_checkpoint_folder("r", contents_.get(), disk_).ok());
  EXPECT_EQ(refusal("r"), "");
  contents_.record.metrics = {{"loss", std::nan("")}};
  ASSERT_TRUE(write_checkpoint_folder("n", contents_.get(), disk_).ok());
  const CheckpointFolder folder = open_checkpoint_folder("n", disk_).take_or_throw();
  EXPECT_TRUE(std::isnan(read_run_record(folder).take_or_throw().metrics.at("loss")));
}

TEST_F(Folders, AMalformedRecordIsNamedByKey) {
  const struct {
    const char* file;
    const char* text;
    const char* message;
  } cases[] = {
      {"position.json", "[]", "c/position.json: no object"},
      {"position.json", "{", "c/position.json: malformed at byte 1"},
      {"position.json", R"({"step": -1})", "'step' is '-1', a number of steps was expected"},
      {"position.json", R"({"step": 9223372036854775808})", "'step' is '9223372036854775808'"},
      {"position.json", R"({"step": 1, "data_position": "1"})",
       "'data_position' is '1', a position"},
      {"position.json", R"({"step": 1, "data_position": 1})", "'seed' is missing, a seed"},
      {"position.json", R"({"step": 1, "data_position": 1, "seed": 1, "identity": {"a": 1}})",
       "'identity.a' is '1', a text was expected"},
      {"metrics.json", R"({"a": "one"})", "'a' is 'one', a number was expected"},
      {"metrics.json", R"({"a": [1]})", "'a' is 'a list', a number was expected"},
      {"metrics.json", R"({"a": "5"})", "'a' is '5', a number was expected"},
  };
  for (const auto& [file, text, message] : cases) {
    disk_ = MemoryDisk();
    CheckpointContents contents = contents_.get();
    contents.texts[file] = text;
    ASSERT_TRUE(write_checkpoint_folder("c", contents, disk_).ok());
    const CheckpointFolder folder = open_checkpoint_folder("c", disk_).take_or_throw();
    EXPECT_THAT(read_run_record(folder).error(), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace fullbore

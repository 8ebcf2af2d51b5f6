// A snapshot holds what the State held, laid out as the files will be.
#include "fullbore/train/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "fullbore/base/philox.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

// Sizes that fill no line, tiny, empty and large tensors, of types and roles that take turns.
State mixed_state() {
  std::vector<StateEntry> entries;
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i);
    const int64_t large = i == 2 ? 3'000'001 : 17 + 300 * i;
    entries.push_back({"weight" + name, Role::parameter, {DType::f32, {large}}});
    entries.push_back({"narrow" + name, Role::frozen, {DType::bf16, {large / 2}}});
    entries.push_back({"none" + name, Role::parameter, {DType::f32, {0, 3}}});
    entries.push_back({"m" + name, Role::moment, {DType::f32, {large}}});
    entries.push_back({"n" + name, Role::moment, {DType::i64, Shape{}}});
  }
  return State(entries, cpu_device(3));
}

void fill(State& state, uint64_t seed) {
  PhiloxStream draws(seed);
  for (size_t entry = 0; entry < state.entries().size(); ++entry) {
    std::vector<std::byte> data(static_cast<size_t>(state.entries()[entry].type.bytes()));
    for (size_t i = 0; i + 8 <= data.size(); i += 8) {
      const uint64_t bits = draws.below(UINT64_MAX);
      std::memcpy(&data[i], &bits, sizeof bits);
    }
    state.write(static_cast<int>(entry), data);
  }
}

std::string contents(const NamedTensor& tensor) {
  if (!tensor.pieces)
    return {static_cast<const char*>(tensor.data), static_cast<size_t>(tensor.type.bytes())};
  std::string all;
  tensor.pieces([&](std::span<const std::byte> piece) {
    all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return all;
}

TEST(SnapshotTest, HoldsTheStateOfItsTime) {
  State state = mixed_state();
  Snapshot snapshot(state, Compression::none);
  const auto expect_equal = [&] {
    const std::vector<TensorGroup> expected = tensor_groups(state, Compression::none);
    ASSERT_EQ(snapshot.groups().size(), expected.size());
    for (size_t group = 0; group < expected.size(); ++group) {
      EXPECT_EQ(snapshot.groups()[group].name, expected[group].name);
      const std::vector<NamedTensor> tensors = in_file_order(expected[group].tensors);
      ASSERT_EQ(snapshot.groups()[group].tensors.size(), tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        const NamedTensor& found = snapshot.groups()[group].tensors[i];
        EXPECT_EQ(found.name, tensors[i].name);
        EXPECT_EQ(found.type, tensors[i].type);
        EXPECT_TRUE(contents(found) == contents(tensors[i])) << found.name;
      }
    }
  };
  EXPECT_FALSE(snapshot.is_current());
  snapshot.take();  // of zeros, for which no memory is met
  EXPECT_TRUE(snapshot.is_current());
  expect_equal();
  for (const uint64_t seed : {1U, 2U}) {
    fill(state, seed);
    EXPECT_FALSE(snapshot.is_current());
    snapshot.take();
    expect_equal();
  }
  const std::string before = contents(snapshot.groups()[0].tensors[0]);
  fill(state, 3);
  EXPECT_TRUE(contents(snapshot.groups()[0].tensors[0]) == before) << "training goes on";
}

TEST(SnapshotTest, AFilesTensorsLieSideBySideFromAPageOn) {
  State state = mixed_state();
  const Snapshot snapshot(state, Compression::none);
  for (const TensorGroup& group : snapshot.groups()) {
    const char* at = static_cast<const char*>(group.tensors.front().data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kDirectAlignment, 0U) << group.name;
    for (const NamedTensor& tensor : group.tensors) {
      EXPECT_EQ(tensor.data, at) << tensor.name;
      at += tensor.type.bytes();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) %
                    static_cast<uintptr_t>(dtype_bytes(tensor.type.dtype)),
                0U);
    }
  }
}

TEST(SnapshotTest, PagesAreMetUntilItIsEnoughAndKeepTheirContents) {
  State state = mixed_state();
  Snapshot snapshot(state, Compression::all);
  EXPECT_TRUE(snapshot.groups()[0].packed);
  fill(state, 4);
  snapshot.take();
  const std::string before = contents(snapshot.groups()[0].tensors[0]);
  std::atomic<bool> enough{false};
  snapshot.meet(enough);
  enough = true;
  snapshot.meet(enough);
  EXPECT_TRUE(contents(snapshot.groups()[0].tensors[0]) == before);
}

}  // namespace
}  // namespace fullbore

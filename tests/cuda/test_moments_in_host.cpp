// Moments in the host's memory: copies are branches of the step's graph, ordered as they have to be, and State is found wherever
// it lies. Whole steps are in test_offloaded_steps.cpp.
#include <gmock/gmock.h>

#include <cstring>

#include "fullbore/base/error.h"
#include "fullbore/device/registry.h"
#include "fullbore/device/state_in_host.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/snapshot.h"
#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

using ::testing::HasSubstr;

using Words = std::vector<uint64_t>;

class MomentsInHost : public FakeCard {
 protected:
  static std::shared_ptr<Device> open_in_host() { return open_device("cuda", 0, true); }
};

// Each of these is a dependency that a step's copies need; without it some order of the card shows.
TEST_F(MomentsInHost, MissTheirDependencies) {
  const auto device = open_in_host();
  auto* const in_host = dynamic_cast<StateInHost*>(device.get());
  ASSERT_NE(in_host, nullptr);
  const MixingKernel kernel;
  constexpr int64_t kBytes = MixingKernel::kBytes;
  // Two values of the host's by way of one place, each changed by the card's.
  const auto result = [&](uint64_t seed) {
    fake().seed = seed;
    const auto host = in_host->allocate_in_host(2 * kBytes);
    const auto card = device->allocate(2 * kBytes);
    for (int64_t i = 0; i < 2; ++i) {
      const Words words(MixingKernel::kElements, static_cast<uint64_t>(3 + i));
      device->write(host->address() + i * kBytes, std::as_bytes(std::span(words)));
      device->write(card->address() + i * kBytes, std::as_bytes(std::span(words)));
    }
    const auto recorder = device->record();
    const LaunchOperand staged{.base = card->address()}, x{.base = card->address() + kBytes};
    for (int i = 0; i < 2; ++i) {
      const LaunchOperand place{.base = host->address() + i * kBytes};
      recorder->copy(3 * i, place, staged, kBytes, true);
      recorder->launch(3 * i + 1, *kernel.node, std::vector<LaunchOperand>{staged, x, staged},
                       true);
      recorder->copy(3 * i + 2, staged, place, kBytes, true);
    }
    const auto program = recorder->finish();
    for (int run = 0; run < 2; ++run) program->run();
    program->wait();
    Words words(2 * MixingKernel::kElements);
    device->read(host->address(), std::as_writable_bytes(std::span(words)));
    return words;
  };
  const Words intact = result(0);
  EXPECT_EQ(intact.front(), 3 * (3 * 3 + 4 + 1) + 4 + 1U);
  EXPECT_EQ(intact.back(), 3 * (3 * 4 + 4 + 1) + 4 + 1U);
  for (uint64_t seed = 1; seed < 16; ++seed) ASSERT_EQ(result(seed), intact) << seed;
  for (const char* const edge : {"copy_in>mix", "mix>copy_out", "copy_out>copy_in"}) {
    bool is_missed = false;
    for (uint64_t seed = 1; seed < 16 && !is_missed; ++seed) {
      std::strncpy(fake().lose_edges, edge, sizeof fake().lose_edges - 1);
      is_missed = result(seed) != intact;
      std::memset(fake().lose_edges, 0, sizeof fake().lose_edges);
    }
    EXPECT_TRUE(is_missed) << edge;
  }
  for (const char* const node : {"copy_in", "copy_out"}) {
    std::strncpy(fake().lose_nodes, node, sizeof fake().lose_nodes - 1);
    EXPECT_NE(result(0), intact) << node;
    std::memset(fake().lose_nodes, 0, sizeof fake().lose_nodes);
  }
}

// A copy that has a place of its own follows no launch before it: where it did, the edge would be there to lose.
TEST_F(MomentsInHost, AreBroughtBesideWhatComesBefore) {
  const auto device = open_in_host();
  const MixingKernel kernel;
  constexpr int64_t kBytes = MixingKernel::kBytes;
  const auto host = dynamic_cast<StateInHost&>(*device).allocate_in_host(kBytes);
  const auto card = device->allocate(3 * kBytes);
  const auto edges = [&](const char* edge, int64_t staged) {
    std::strncpy(fake().lose_edges, edge, sizeof fake().lose_edges - 1);
    const int64_t before = fake().lost_in_graphs;
    const auto recorder = device->record();
    const LaunchOperand a{.base = card->address()}, b{.base = card->address() + kBytes};
    const LaunchOperand place{.base = card->address() + staged * kBytes};
    recorder->launch(0, *kernel.node, std::vector<LaunchOperand>{a, b, a}, true);
    recorder->copy(1, {.base = host->address()}, place, kBytes, true);
    recorder->launch(2, *kernel.node, std::vector<LaunchOperand>{a, place, b}, true);
    recorder->copy(3, place, {.base = host->address()}, kBytes, true);
    const auto program = recorder->finish();
    std::memset(fake().lose_edges, 0, sizeof fake().lose_edges);
    return fake().lost_in_graphs - before;
  };
  EXPECT_EQ(edges("mix>copy_in", 2), 0);
  EXPECT_EQ(edges("mix>copy_in", 0), 1);
  EXPECT_EQ(edges("copy_in>mix", 2), 1);
}

// What is left to go on beside the next run is there for whoever looks, and for another program; what that run may overwrite
// it waits for.
TEST_F(MomentsInHost, GoOnBesideTheNextRun) {
  const auto device = open_in_host();
  const MixingKernel kernel;
  constexpr int64_t kBytes = MixingKernel::kBytes;
  const auto result = [&](uint64_t seed, bool is_behind) {
    fake().seed = seed;
    const auto host = dynamic_cast<StateInHost&>(*device).allocate_in_host(kBytes);
    const auto card = device->allocate(4 * kBytes);
    const Words ones(4 * MixingKernel::kElements, 1);
    device->write(card->address(), std::as_bytes(std::span(ones)));
    device->write(host->address(), std::as_bytes(std::span(ones).first(MixingKernel::kElements)));
    const LaunchOperand a{.base = card->address()}, b{.base = card->address() + kBytes};
    const LaunchOperand staged{.base = card->address() + 2 * kBytes};
    const LaunchOperand place{.base = host->address()};
    const auto program = [&](const LaunchOperand& other) {
      const auto recorder = device->record();
      recorder->launch(0, *kernel.node, std::vector<LaunchOperand>{a, b, a}, true);
      recorder->wait_for_copies_behind();
      recorder->copy(1, place, staged, kBytes, true);
      recorder->launch(2, *kernel.node, std::vector<LaunchOperand>{staged, other, staged}, true);
      if (is_behind)
        recorder->copy_behind(3, staged, place, kBytes);
      else
        recorder->copy(3, staged, place, kBytes, true);
      return recorder->finish();
    };
    // Its first launch writes the place from which the others' copies go on.
    const auto overwriting = [&] {
      const auto recorder = device->record();
      const LaunchOperand aside{.base = card->address() + 3 * kBytes};
      recorder->launch(0, *kernel.node, std::vector<LaunchOperand>{b, b, staged}, true);
      recorder->wait_for_copies_behind();
      recorder->copy(1, place, aside, kBytes, true);
      recorder->launch(2, *kernel.node, std::vector<LaunchOperand>{aside, staged, aside}, true);
      if (is_behind)
        recorder->copy_behind(3, aside, place, kBytes);
      else
        recorder->copy(3, aside, place, kBytes, true);
      return recorder->finish();
    };
    const auto first = program(a), second = program(b), third = overwriting();
    const int64_t before = fake().graph_launches;
    for (Replayable* const each :
         {first.get(), first.get(), second.get(), first.get(), third.get(), first.get()}) {
      each->run();
      if (seed % 2 == 0) each->wait();
    }
    first->set_profiling(true);  // launch by launch
    first->run();
    first->wait();
    first->set_profiling(false);
    EXPECT_EQ(fake().graph_launches - before, is_behind ? 6 * 3 : 6 * 2);
    first->run();
    Words words(MixingKernel::kElements);
    device->read(host->address(), std::as_writable_bytes(std::span(words)));
    return words;
  };
  const Words expected = result(0, false);
  for (uint64_t seed = 0; seed < 64; ++seed) EXPECT_EQ(result(seed, true), expected) << seed;
}

// State is read, written, copied and saved wherever it lies.
TEST_F(MomentsInHost, AreStateLikeAnyOther) {
  const TensorType type{DType::i64, {64}};
  const auto device = open_in_host();
  State state({{.name = "weight", .role = Role::parameter, .type = type},
               {.name = "m", .role = Role::moment, .type = type},
               {.name = "n", .role = Role::moment, .type = type},
               {.name = "other", .role = Role::parameter, .type = type}},
              device);
  EXPECT_EQ(state.bytes(), 2 * 512);
  EXPECT_EQ(state.host_bytes(), 2 * 512);
  EXPECT_EQ(state.read<int64_t>("m"), std::vector<int64_t>(64, 0));
  std::vector<int64_t> values(64);
  for (size_t i = 0; i < 64; ++i) values[i] = static_cast<int64_t>(i * i);
  state.write("m", values);
  EXPECT_EQ(state.read<int64_t>("m"), values);
  EXPECT_EQ(state.read<int64_t>("n"), std::vector<int64_t>(64, 0));
  state.copy(state.find("m"), state.find("n"));
  state.copy(state.find("n"), state.find("weight"));
  EXPECT_EQ(state.read<int64_t>("weight"), values);
  values[5] = -1;
  state.write("other", values);
  state.copy(state.find("other"), state.find("n"));
  EXPECT_EQ(state.read<int64_t>("n"), values);
  state.produce(state.find("m"), Pieces::any_order, [](int64_t, std::span<std::byte> piece) {
    std::memset(piece.data(), 1, piece.size());
  });
  int64_t seen = 0;
  state.consume(Role::moment, DType::i64, Pieces::any_order,
                [&](int64_t offset, std::span<const std::byte> piece) {
                  seen += static_cast<int64_t>(piece.size());
                  if (offset == 0) {
                    EXPECT_EQ(piece[511], std::byte{1});
                  }
                });
  EXPECT_EQ(seen, 2 * 512);
  Snapshot snapshot(state, Compression::none);
  snapshot.take();
  state.write("n", std::vector<int64_t>(64, 9));
  for (const TensorGroup& group : snapshot.groups())
    for (const NamedTensor& tensor : group.tensors)
      if (tensor.name == "n") {
        EXPECT_EQ(std::memcmp(tensor.data, values.data(), 512), 0);
      }
}

// What is read, written or saved comes behind the runs before it, and what is run comes behind that.
TEST_F(MomentsInHost, AreLookedAtBehindRuns) {
  const auto device = open_in_host();
  const MixingKernel kernel;
  constexpr int64_t kBytes = MixingKernel::kBytes;
  const auto host = dynamic_cast<StateInHost&>(*device).allocate_in_host(kBytes);
  const auto card = device->allocate(kBytes);
  const auto write = [&](uint64_t word) {
    const Words words(MixingKernel::kElements, word);
    device->write(host->address(), std::as_bytes(std::span(words)));
  };
  const auto recorder = device->record();
  const LaunchOperand place{.base = host->address()}, staged{.base = card->address()};
  recorder->copy(0, place, staged, kBytes, true);
  recorder->launch(1, *kernel.node, std::vector<LaunchOperand>{staged, staged, staged}, true);
  recorder->copy(2, staged, place, kBytes, true);
  const auto program = recorder->finish();
  write(1);
  program->run();  // 4 + 1
  const auto saved = device->allocate_host(kBytes);
  device->snapshot(std::vector<SnapshotPart>{{host->address(), 0, kBytes}}, *saved, false);
  saved->wait();
  uint64_t first = 0;
  std::memcpy(&first, saved->bytes().data(), sizeof first);
  EXPECT_EQ(first, 5U);
  program->run();
  write(7);
  program->run();
  Words words(MixingKernel::kElements);
  device->read(host->address(), std::as_writable_bytes(std::span(words)));
  EXPECT_EQ(words.front(), 4 * 7 + 1U);
}

TEST_F(MomentsInHost, SayWhatTheyWantedWhereThereIsNone) {
  const auto device = open_in_host();
  fake().fail_at = 1;
  fake().fail_code = 2;
  std::strncpy(fake().fail_call, "cuMemHostAlloc", sizeof fake().fail_call - 1);
  const std::string problem = message_of<MemoryError>([&] {
    State({{.name = "m", .role = Role::moment, .type = {DType::f32, {1 << 20}}}}, device);
  });
  EXPECT_THAT(problem, HasSubstr("4.00 MiB of the host's memory are wanted for moments"));
  EXPECT_THAT(problem, HasSubstr("engine.offload=none"));
}

TEST_F(MomentsInHost, AreRefusedWhereThereIsNoOtherMemory) {
  for (const char* const name : {"cpu", "null", "reference"})
    EXPECT_THAT(message_of<UsageError>([&] { open_device(name, 1, true); }),
                HasSubstr("moments are in host memory already"));
  EXPECT_TRUE(open_device("card:RTX 4090", 0, true)->facts().moments_in_host);
  EXPECT_FALSE(open_device("cuda")->facts().moments_in_host);
}

}  // namespace
}  // namespace fullbore::cuda

// Every wait and every event of the executor and the device is taken away in turn: the driver, which does everything as late
// as it may or in an order drawn from a seed, then shows another result or a fault. Those that are not missed are listed
// with the reason: something else orders the same.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "fullbore/base/error.h"
#include "fullbore/device/state_in_host.h"
#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kBytes = MixingKernel::kBytes;
constexpr size_t kWords = MixingKernel::kElements;
constexpr const char* kPageable =
    "the driver returns from a copy to pageable memory when it is made";

using Words = std::vector<uint64_t>;

/// A card with memory and programs over it, what the host saw of it, and which of its calls are lost.
class World {
 public:
  World(FakeCuda& fake, std::shared_ptr<Device> device, int64_t lose_at)
      : fake_(fake), lose_at_(lose_at), device_(std::move(device)) {
    memory_ = device_->allocate(4 * kBytes);
    for (int64_t i = 0; i < 4; ++i) write(i, static_cast<uint64_t>(i + 1));
  }
  Device& device() { return *device_; }
  Address value(int64_t index) const { return memory_->address() + index * kBytes; }
  void write(int64_t index, uint64_t word) {
    const Words words(kWords, word);
    device_->write(value(index), std::as_bytes(std::span(words)));
  }

  /// value 0 = 3 batch + value 0 + 1.
  std::unique_ptr<Replayable> batch_program() const {
    const auto recorder = device_->record();
    const LaunchOperand x{.base = value(0)};
    recorder->launch(0, *kernel_.node, std::vector<LaunchOperand>{{.batch_input = 0}, x, x}, true);
    return recorder->finish();
  }
  /// value 0 = 3 value 0 + value 0 + 1, once; or as often as the first word of value 1 says.
  std::unique_ptr<Replayable> program(bool is_counted = false) const {
    const auto recorder = device_->record();
    const LaunchOperand x{.base = value(0)};
    if (is_counted)
      recorder->begin_loop(0, {.iterations = 4, .count = LaunchOperand{.base = value(1)}});
    recorder->launch(1, *kernel_.node, std::vector<LaunchOperand>{x, x, x}, true);
    if (is_counted) recorder->end_loop();
    return recorder->finish();
  }
  /// As often as the first word of value 1 says, or until the first byte of value 2 is not 0: rows of the memory mixed
  /// with value 3, by a graph an iteration.
  std::unique_ptr<Replayable> program_of_graphs() const {
    const auto recorder = device_->record();
    const LaunchOperand row{.base = value(0), .strides = {kBytes}}, last{.base = value(3)};
    recorder->begin_loop(0, {.iterations = 4,
                             .count = LaunchOperand{.base = value(1)},
                             .stop = LaunchOperand{.base = value(2)}});
    for (int i = 1; i < 6; i += 2) {
      recorder->launch(i, *kernel_.node, std::vector<LaunchOperand>{row, last, row}, true);
      recorder->launch(i + 1, *kernel_.node, std::vector<LaunchOperand>{last, row, last}, true);
    }
    recorder->end_loop();
    return recorder->finish();
  }
  /// The value in the host's memory there, mixed with value 0 in value 1's place.
  std::unique_ptr<Replayable> program_of_host_state(Address in_host) const {
    const auto recorder = device_->record();
    const LaunchOperand place{.base = in_host}, staged{.base = value(1)}, x{.base = value(0)};
    recorder->copy(0, place, staged, kBytes, true);
    recorder->launch(1, *kernel_.node, std::vector<LaunchOperand>{staged, x, staged}, true);
    recorder->copy(2, staged, place, kBytes, true);
    return recorder->finish();
  }
  /// The same behind a launch that reads and writes value 0, beside which the copy of the run before may go on.
  std::unique_ptr<Replayable> program_with_copies_behind(Address in_host) const {
    const auto recorder = device_->record();
    const LaunchOperand place{.base = in_host}, staged{.base = value(1)}, x{.base = value(0)};
    recorder->launch(0, *kernel_.node, std::vector<LaunchOperand>{x, x, x}, true);
    recorder->wait_for_copies_behind();
    recorder->copy(1, place, staged, kBytes, true);
    recorder->launch(2, *kernel_.node, std::vector<LaunchOperand>{staged, x, staged}, true);
    recorder->copy_behind(3, staged, place, kBytes);
    return recorder->finish();
  }
  static void bind(Replayable& program, uint64_t word) {
    Words words(kWords, word);
    const void* const batch[] = {words.data()};
    program.bind_batch(batch);
    words.assign(kWords, 77);
  }
  void snapshot(HostMemory& to) {
    device_->snapshot(std::vector<SnapshotPart>{{value(0), 0, kBytes}}, to, false);
  }

  /// Calls are lost from here on, until end().
  void begin() {
    before_ = fake_.orders;
    fake_.lose_at = lose_at_;
  }
  void end() {
    fake_.lose_at = 0;
    orders_ = fake_.orders - before_;
  }
  int64_t orders() const { return orders_; }

  void see(std::span<const std::byte> bytes) {
    Words words(bytes.size() / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    seen_.insert(seen_.end(), words.begin(), words.end());
  }
  void see_value(int64_t index) {
    Words words(kWords);
    device_->read(value(index), std::as_writable_bytes(std::span(words)));
    see(std::as_bytes(std::span(words)));
  }
  const Words& seen() const { return seen_; }

 private:
  FakeCuda& fake_;
  int64_t lose_at_;
  int64_t before_ = 0, orders_ = 0;
  MixingKernel kernel_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceMemory> memory_;
  Words seen_;
};

/// By the number of the call in the scene, from 1 on.
using Needless = std::map<int64_t, const char*>;

class LostWaits : public FakeCard {
 protected:
  struct Outcome {
    Words seen;
    int64_t orders = 0;
    std::string problem;  ///< an error, or a fault that nobody asked for
    bool operator==(const Outcome&) const = default;
  };
  using Scene = std::function<void(World&)>;

  static Outcome play(const Scene& scene, uint64_t seed, int64_t lose_at) {
    fake().seed = seed;
    Outcome outcome;
    try {
      World world(fake(), open(), lose_at);
      scene(world);
      outcome.seen = world.seen();
      outcome.orders = world.orders();
    } catch (const Error& error) {
      outcome.problem = error.what();
    }
    fake().lose_at = 0;
    if (outcome.problem.empty()) outcome.problem = fake().fault;
    restart();
    return outcome;
  }

  /// `seeds`: orders that each loss is tried in.
  static void expect_missed(const Scene& scene, const Needless& needless, uint64_t seeds = 12) {
    const Outcome intact = play(scene, 0, 0);
    ASSERT_EQ(intact.problem, "");
    for (uint64_t seed = 1; seed < seeds; ++seed) ASSERT_EQ(play(scene, seed, 0), intact) << seed;
    for (int64_t lost = 1; lost <= intact.orders; ++lost) {
      bool is_missed = false;
      for (uint64_t seed = 0; seed < seeds && !is_missed; ++seed) {
        const Outcome outcome = play(scene, seed, lost);
        is_missed = outcome.seen != intact.seen || !outcome.problem.empty();
      }
      EXPECT_EQ(is_missed, !needless.contains(lost))
          << "call " << lost << " of " << intact.orders << ", " << fake().lost_order << ": "
          << (needless.contains(lost) ? needless.at(lost) : "its loss changes nothing");
    }
    // What a card that failed held cannot be given back: nothing more is asked of this test.
    reset();
  }
};

// Two slots: the third batch takes the memory of the first.
TEST_F(LostWaits, OfBatches) {
  expect_missed(
      [](World& world) {
        const auto program = world.batch_program();
        world.begin();
        for (const uint64_t word : {2, 3, 5, 7}) {
          World::bind(*program, word);
          program->run();
        }
        program->wait();
        world.see_value(0);
        world.end();
      },
      {{1, "the first slot holds no batch yet"},
       {2, "no batch has been released yet"},
       {6, "the second slot holds no batch yet"},
       {20, "no batch follows"},
       {21, "what is read comes behind it in the main stream"},
       {22, kPageable}},
      100);
}

TEST_F(LostWaits, OfABatchThatNoRunWaitsFor) {
  expect_missed(
      [](World& world) {
        auto program = world.batch_program();
        world.begin();
        World::bind(*program, 2);
        program.reset();
        world.end();
      },
      {{1, "the first slot holds no batch yet"},
       {2, "no batch has been released yet"},
       {3, "no run and no batch follows"},
       {4, "there was no run"}});
}

TEST_F(LostWaits, OfSnapshots) {
  expect_missed(
      [](World& world) {
        const auto program = world.program();
        const auto host = world.device().allocate_host(kBytes);
        program->run();
        world.begin();
        world.snapshot(*host);
        host->wait();
        world.see(host->bytes());
        world.end();
      },
      {{4, "no run follows"}});
}

TEST_F(LostWaits, OfSnapshotsBeforeARun) {
  expect_missed(
      [](World& world) {
        const auto program = world.program();
        const auto host = world.device().allocate_host(kBytes);
        program->run();
        world.begin();
        world.snapshot(*host);
        program->run();
        program->wait();
        host->wait();
        world.see(host->bytes());
        world.end();
      },
      {{5, "a run without a batch has nothing to release"},
       {6, "the run waits for the copies, and the host for the run"}});
}

TEST_F(LostWaits, OfASnapshotThatNobodyWaitsFor) {
  expect_missed(
      [](World& world) {
        auto host = world.device().allocate_host(kBytes);
        world.begin();
        world.snapshot(*host);
        host.reset();
        world.end();
      },
      {{1, "the bytes are not looked at"},
       {2, "the bytes are not looked at"},
       {4, "no run follows"}});
}

TEST_F(LostWaits, OfReadsAndWrites) {
  expect_missed(
      [](World& world) {
        const auto program = world.program();
        const auto host = world.device().allocate_host(kBytes);
        std::memset(host->bytes().data(), 5, kBytes);
        world.begin();
        world.device().write(world.value(0), host->bytes());
        std::memset(host->bytes().data(), 6, kBytes);
        program->run();
        world.device().read(world.value(0), host->bytes());
        world.see(host->bytes());
        world.end();
      },
      {});
}

TEST_F(LostWaits, OfStateInTheHostsMemory) {
  expect_missed(
      [](World& world) {
        Device& device = world.device();
        const auto state = dynamic_cast<StateInHost&>(device).allocate_in_host(kBytes);
        const auto saved = device.allocate_host(kBytes);
        const auto program = world.program_of_host_state(state->address());
        Words words(kWords, 9);
        world.begin();
        program->run();
        device.read(state->address(), std::as_writable_bytes(std::span(words)));
        world.see(std::as_bytes(std::span(words)));
        program->run();
        words.assign(kWords, 9);
        device.write(state->address(), std::as_bytes(std::span(words)));
        program->run();
        device.snapshot(std::vector<SnapshotPart>{{state->address(), 0, kBytes}}, *saved, false);
        saved->wait();
        world.see(saved->bytes());
        world.end();
      },
      {{3, "no bytes of the card's are saved"},
       {4, "no bytes of the card's are saved"},
       {5, "no bytes of the card's are saved"},
       {6, "no bytes of the card's are saved"},
       {8, "the host has copied it by itself"}});
}

TEST_F(LostWaits, OfCopiesBesideTheNextRun) {
  expect_missed(
      [](World& world) {
        const auto state = dynamic_cast<StateInHost&>(world.device()).allocate_in_host(kBytes);
        const auto program = world.program_with_copies_behind(state->address());
        Words words(kWords);
        world.begin();
        program->run();
        program->run();
        program->wait();
        world.device().read(state->address(), std::as_writable_bytes(std::span(words)));
        world.see(std::as_bytes(std::span(words)));
        world.end();
      },
      {{8, "who reads the state waits for the run too"},
       {9, "the copies that are waited for come behind the run"}},
      100);
}

TEST_F(LostWaits, OfALoopWhoseCountTheHostReads) {
  fake().version = 12030;  // no conditional nodes
  expect_missed(
      [](World& world) {
        world.write(1, 3);
        const auto program = world.program(true);
        world.begin();
        program->run();
        world.see_value(0);
        world.end();
      },
      {{2, kPageable}});
}

// Value 2 is row 2: the third iteration mixes it, and is the last one.
TEST_F(LostWaits, OfALoopWhoseBodyIsAGraph) {
  fake().version = 12030;  // no conditional nodes
  expect_missed(
      [](World& world) {
        world.write(1, 4);
        world.write(2, 0);
        world.write(3, 5);
        const auto program = world.program_of_graphs();
        world.begin();
        program->run();
        world.see_value(0);
        world.see_value(3);
        world.end();
      },
      {{3, "the flag is as it was before"}, {5, kPageable}, {6, kPageable}});
}

// What the card has counted is copied behind the run.
TEST_F(LostWaits, OfIterationsThatTheCardCounts) {
  expect_missed(
      [](World& world) {
        world.write(1, 3);
        const auto program = world.program(true);
        world.begin();
        program->run();
        const int64_t iterations = program->iterations_made(0);
        world.see(std::as_bytes(std::span(&iterations, 1)));
        world.end();
      },
      {});
}

TEST_F(LostWaits, OfAProfile) {
  expect_missed(
      [](World& world) {
        const auto program = world.program();
        program->set_profiling(true);
        world.begin();
        program->run();
        program->wait();
        world.end();
        EXPECT_EQ(program->events().size(), 1U);
      },
      {{2, "it tells what both clocks show at one moment"}});
}

// Pieces of 4 MiB by two pinned blocks in turns.
TEST_F(LostWaits, OfContentsPieceByPiece) {
  constexpr int64_t kAll = (int64_t{12} << 20) + 64;
  const Scene scene = [](World& world) {
    const auto memory = world.device().allocate(kAll);
    world.begin();
    world.device().produce(
        memory->address(), kAll, Pieces::in_order, [](int64_t offset, std::span<std::byte> piece) {
          for (size_t i = 0; i < piece.size(); i += size_t{1} << 18)
            piece[i] = static_cast<std::byte>(1 + (offset >> 18) + static_cast<int64_t>(i >> 18));
        });
    Words sums;
    world.device().consume(memory->address(), kAll, Pieces::in_order,
                           [&](int64_t, std::span<const std::byte> piece) {
                             for (size_t i = 0; i < piece.size(); i += size_t{1} << 18)
                               sums.push_back(std::to_integer<uint64_t>(piece[i]));
                           });
    world.see(std::as_bytes(std::span(sums)));
    world.end();
  };
  expect_missed(scene,
                {{1, "the first block is new"},
                 {3, "the second block is new"},
                 {6, "no piece follows in the first block, and the stream is waited for"},
                 {8, "no piece follows in the second block, and the stream is waited for"},
                 {9, "who reads the card comes behind in its stream, and blocks are kept"}},
                3);
}

}  // namespace
}  // namespace fullbore::cuda

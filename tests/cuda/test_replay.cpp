// Recorded programs drawn from a seed: the card has the bits that the host makes launch by launch.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <random>

#include "fullbore/base/error.h"
#include "fullbore/device/sequential_replay.h"
#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = MixingKernel::kBytes;
constexpr int64_t kMostIterations = 4;

/// The definition: launch by launch, in memory of the host.
class HostReplay final : public SequentialReplay {
 public:
  using SequentialReplay::SequentialReplay;

 private:
  static std::byte* at(const Place& place) {
    return static_cast<std::byte*>(place.host ? const_cast<void*>(place.host)
                                              : reinterpret_cast<void*>(place.address.value));
  }
  void launch(const Kernel&, std::span<const Place> operands) override {
    MixingKernel::run(reinterpret_cast<const uint64_t*>(at(operands[0])),
                      reinterpret_cast<const uint64_t*>(at(operands[1])),
                      reinterpret_cast<uint64_t*>(at(operands[2])));
  }
  void copy(Place from, Place to, int64_t bytes) override {
    std::memmove(at(to), at(from), static_cast<size_t>(bytes));
  }
  void clear(Place place, int64_t bytes) override {
    std::memset(at(place), 0, static_cast<size_t>(bytes));
  }
  int64_t number(Place place, int64_t bytes, int64_t) const override {
    int64_t value = 0;
    std::memcpy(&value, at(place), static_cast<size_t>(bytes));
    return value;
  }
  void set_number(Place place, int64_t value) override {
    std::memcpy(at(place), &value, sizeof value);
  }
};

class HostRecorder final : public Recording {
 public:
  std::unique_ptr<Replayable> finish() override { return std::make_unique<HostReplay>(take()); }
};

/// A program over one memory: values that kernels mix, stacks that loops walk over, numbers, and a batch of two fields.
class RandomProgram {
 public:
  static constexpr int64_t kValues = 12;
  static constexpr int64_t kStacks = 4;
  static constexpr int64_t kNumbers = 64;
  static constexpr int64_t kStackBytes = kMostIterations * kBytes;
  static constexpr int64_t kAllBytes = kValues * kBytes + kStacks * kStackBytes + 8 * kNumbers;

  RandomProgram(uint64_t seed, Recorder& recorder, Address memory, const MixingKernel& kernel)
      : random_(seed), recorder_(recorder), memory_(memory), kernel_(kernel) {
    body(6, 0);
  }
  int launches() const { return next_id_; }
  const std::vector<int>& loops() const { return loops_; }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }
  LaunchOperand value(int64_t index) const {
    LaunchOperand operand{.base = memory_ + index * kBytes};
    // The innermost loop that exchanges it decides; there is one exchange of a value at most.
    for (const auto& [loop, from, to] : exchanged_)
      if (index == from || index == to) {
        operand.exchanged_by = {loop};
        operand.exchanged_bases = {operand.base, memory_ + (from + to - index) * kBytes};
      }
    return operand;
  }
  /// What may be read: a value, a row of a stack, or of a field of the batch.
  LaunchOperand read_from() {
    const uint64_t kind = draw(4);
    if (kind < 2) return value(static_cast<int64_t>(draw(kValues)));
    LaunchOperand operand;
    if (kind == 2)
      operand = stack(static_cast<int64_t>(draw(kStacks)));
    else
      operand.batch_input = static_cast<int>(draw(2));
    if (depth_ > 0) {
      operand.strides.assign(depth_, 0);
      operand.strides[draw(depth_)] = kBytes;
    }
    return operand;
  }
  LaunchOperand stack(int64_t index) const {
    return {.base = memory_ + kValues * kBytes + index * kStackBytes};
  }
  Address number() {
    return memory_ + kValues * kBytes + kStacks * kStackBytes + 8 * next_number_++;
  }

  void kernel(int64_t into, bool waits) {
    const LaunchOperand target = value(into);
    LaunchOperand x = read_from(), y = read_from();
    recorder_.launch(next_id_++, *kernel_.node, std::vector<LaunchOperand>{x, y, target}, waits);
  }

  /// Side by side: each writes a value of its own, from the batch, which none writes.
  void side_by_side() {
    const int64_t first = static_cast<int64_t>(draw(kValues - 3));
    for (int64_t i = 0; i < 3; ++i) {
      LaunchOperand field;
      field.batch_input = static_cast<int>(i % 2);
      recorder_.launch(next_id_++, *kernel_.node,
                       std::vector<LaunchOperand>{field, field, value(first + i)}, i == 0);
    }
  }

  void body(int things, int deep) {
    for (int i = 0; i < things; ++i) switch (draw(deep < 3 ? 6 : 4)) {
        case 0:
        case 1: kernel(static_cast<int64_t>(draw(kValues)), true); break;
        case 2: side_by_side(); break;
        case 3:
          recorder_.copy(next_id_++, read_from(), value(static_cast<int64_t>(draw(kValues))),
                         kBytes, true);
          break;
        default: loop(deep);
      }
  }

  void loop(int deep) {
    if (next_number_ + 4 > kNumbers) return;
    LoopRange range;
    range.iterations = 1 + static_cast<int64_t>(draw(kMostIterations));
    range.reverse = draw(2) == 0;
    const int64_t row_stack = static_cast<int64_t>(draw(kStacks));
    const LaunchOperand cleared = stack(row_stack);
    const uint64_t kind = draw(4);
    // A number whose low byte or value was mixed: 0 to iterations, or beyond it.
    if (kind == 1) {
      range.count = LaunchOperand{.base = number()};
      const LaunchOperand some = value(static_cast<int64_t>(draw(kValues)));
      recorder_.copy(next_id_++, some, *range.count, 8, true);
    }
    if (kind == 2) range.stop = LaunchOperand{.base = number()};
    if (draw(2) == 0) range.index = LaunchOperand{.base = number()};
    if (draw(2) == 0) range.executed = LaunchOperand{.base = number()};
    const int64_t from = static_cast<int64_t>(draw(kValues)), to = (from + 5) % kValues;
    bool exchanges = draw(2) == 0;
    for (const auto& each : exchanged_)
      for (const int64_t other : {each.from, each.to}) exchanges &= other != from && other != to;
    const LaunchOperand exchanged_from = value(from), exchanged_to = value(to);
    loops_.push_back(next_id_);
    recorder_.begin_loop(next_id_++, range);
    if (exchanges) exchanged_.push_back({depth_, from, to});
    ++depth_;
    body(1 + static_cast<int>(draw(3)), deep + 1);
    LaunchOperand row = cleared;
    row.strides.assign(depth_, 0);
    row.strides.back() = kBytes;
    recorder_.launch(next_id_++, *kernel_.node,
                     std::vector<LaunchOperand>{read_from(), value(1), row}, true);
    if (range.index)
      recorder_.copy(next_id_++, *range.index, value(static_cast<int64_t>(draw(kValues))), 8, true);
    if (range.stop)
      recorder_.copy(next_id_++, value(static_cast<int64_t>(draw(kValues))), *range.stop, 1, true);
    if (exchanges)
      recorder_.exchange(exchanged_from, exchanged_to, kBytes);
    else
      recorder_.carry(value(from), value(to), kBytes);
    if (draw(2) == 0) recorder_.clear_rows(cleared, kBytes);
    recorder_.end_loop();
    --depth_;
    if (exchanges) exchanged_.pop_back();
  }

  struct Exchange {
    size_t loop;
    int64_t from, to;
  };
  std::mt19937_64 random_;
  Recorder& recorder_;
  Address memory_;
  const MixingKernel& kernel_;
  size_t depth_ = 0;
  int next_id_ = 0;
  int64_t next_number_ = 0;
  std::vector<Exchange> exchanged_;
  std::vector<int> loops_;
};

class Replay : public FakeCard {
 protected:
  using Words = std::vector<uint64_t>;
  static constexpr size_t kWords = RandomProgram::kAllBytes / 8;
  static constexpr size_t kFieldWords = kMostIterations * kBytes / 8;

  static Words words(size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    Words made(count);
    for (uint64_t& each : made) each = random() % 8;
    return made;
  }

  /// Three runs with a batch each, of which the third is bound before the second was waited for.
  static void check(uint64_t seed) {
    const MixingKernel kernel;
    const auto device = open();
    Words on_host = words(kWords, seed);
    const auto memory = device->allocate(RandomProgram::kAllBytes);
    device->write(memory->address(), std::as_bytes(std::span(on_host)));

    HostRecorder host_recorder;
    const RandomProgram program(seed, host_recorder, {reinterpret_cast<uint64_t>(on_host.data())},
                                kernel);
    const auto host = host_recorder.finish();
    const auto recorder = device->record();
    const RandomProgram same(seed, *recorder, memory->address(), kernel);
    const auto card = recorder->finish();
    card->set_profiling(seed % 5 == 4);
    for (uint64_t run = 0; run < 3; ++run) {
      Words fields[2] = {words(kFieldWords, seed + run), words(kFieldWords, seed * 31 + run)};
      const void* const batch[] = {fields[0].data(), fields[1].data()};
      host->bind_batch(batch);
      host->run();
      card->bind_batch(batch);
      for (Words& each : fields) each.assign(kFieldWords, 99);  // bound is copied
      card->run();
      if (run == 1) continue;
      card->wait();
      Words on_card(kWords);
      device->read(memory->address(), std::as_writable_bytes(std::span(on_card)));
      size_t different = 0;
      for (size_t i = 0; i < kWords; ++i) different += on_host[i] != on_card[i];
      EXPECT_EQ(different, 0U) << "seed " << seed << ", run " << run;
      for (const int loop : program.loops())
        EXPECT_EQ(host->iterations_made(loop), card->iterations_made(loop))
            << "seed " << seed << ", loop " << loop;
      if (seed % 5 == 4) {
        ASSERT_EQ(card->events().size(), 1U);
        EXPECT_GE(card->events()[0].events.size(), 6U);
        EXPECT_EQ(card->events()[0].dropped, 0);
      }
    }
  }
};

// Loops whose counts depend on data are conditional nodes, or stepped by the host where the driver has none.
TEST_F(Replay, MakesWhatTheHostMakes) {
  for (const int64_t version : {12040, 12030})
    for (uint64_t seed = 0; seed < 40; ++seed) {
      fake().version = version;
      fake().seed = seed % 3 == 0 ? 0 : seed;
      check(seed);
    }
  EXPECT_GT(fake().graph_launches, 80);
  EXPECT_GT(fake().conditional_bodies, 80);
}

TEST_F(Replay, MakesItLaunchByLaunchToo) {
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  for (uint64_t seed = 0; seed < 6; ++seed) check(seed);
  EXPECT_EQ(fake().graph_launches, 0);
}

// Of a whole program without loops that depend on data: one graph, and no launch beside it.
TEST_F(Replay, IsOneGraphWhereCountsAreKnown) {
  const MixingKernel kernel;
  const auto device = open();
  const auto memory = device->allocate(4 * kBytes);
  const auto recorder = device->record();
  LaunchOperand x{.base = memory->address()}, y{.base = memory->address() + kBytes};
  recorder->begin_loop(0, {.iterations = 100});
  recorder->launch(1, *kernel.node, std::vector<LaunchOperand>{x, y, x}, true);
  recorder->end_loop();
  const auto program = recorder->finish();
  program->run();
  program->wait();
  EXPECT_EQ(fake().graph_launches, 1);
  EXPECT_EQ(fake().launches, 100);
  EXPECT_EQ(program->iterations_made(0), 100);
}

// 20 000 nodes are the most: beyond, the host steps the loop.
TEST_F(Replay, StepsALoopThatIsTooLongForAGraph) {
  const MixingKernel kernel;
  const auto device = open();
  const auto memory = device->allocate(4 * kBytes);
  const auto recorder = device->record();
  LaunchOperand x{.base = memory->address()}, y{.base = memory->address() + kBytes};
  recorder->launch(0, *kernel.node, std::vector<LaunchOperand>{x, y, y}, true);
  recorder->begin_loop(1, {.iterations = 7000});
  recorder->launch(2, *kernel.node, std::vector<LaunchOperand>{x, y, x}, true);
  recorder->end_loop();
  recorder->launch(3, *kernel.node, std::vector<LaunchOperand>{x, y, y}, true);
  const auto program = recorder->finish();
  program->run();
  program->wait();
  EXPECT_EQ(fake().graph_launches, 2);
  EXPECT_EQ(fake().launches, 7002);
  EXPECT_EQ(program->iterations_made(1), 7000);
}

// Whichever call fails once, the error names it, and nothing stays behind.
TEST_F(Replay, GivesBackWhatItTookWhicheverCallFails) {
  fake().version = 12030;  // without conditional nodes, for which LoopsOnCard has the same
  int failures = 0;
  for (int64_t at = 1;; ++at) {
    const MixingKernel kernel;
    std::string message;
    fake().fail_code = 999;
    {
      const auto device = open();
      fake().fail_at = at;
      try {
        const auto memory = device->allocate(RandomProgram::kAllBytes);
        const auto host = device->allocate_host(kBytes);
        const auto recorder = device->record();
        const RandomProgram some(3, *recorder, memory->address(), kernel);
        const auto program = recorder->finish();
        const Words field(kFieldWords, 1);
        const void* const batch[] = {field.data(), field.data()};
        program->bind_batch(batch);
        program->run();
        device->snapshot(std::vector<SnapshotPart>{{memory->address(), 0, kBytes}}, *host, false);
        program->wait();
        host->wait();
        if (fake().fail_at > 0) {
          fake().fail_at = 0;
          break;
        }
        message = "given back";
      } catch (const Error& error) {
        message = error.what();
      }
    }
    const std::string call = fake().failed;
    // A thing that the driver refuses to take back is its own.
    if (message == "given back" || call == "cuCtxSetCurrent" ||
        message.find(call) == std::string::npos) {
      EXPECT_THAT(call, ::testing::AnyOf(HasSubstr("Destroy"), HasSubstr("Release"),
                                         HasSubstr("Free"), HasSubstr("Unload"),
                                         HasSubstr("cuCtxSetCurrent"), HasSubstr("Synchronize")))
          << message;
      FakeCuda& now = fake();
      now.allocations = now.allocated_bytes = now.pinned = now.streams = now.events = now.modules =
          now.graphs = now.contexts = 0;
      continue;
    }
    ++failures;
    const FakeCuda& now = fake();
    EXPECT_EQ(now.allocations + now.pinned + now.streams + now.events + now.modules + now.graphs +
                  now.contexts,
              0)
        << call << ": " << message;
  }
  EXPECT_GT(failures, 60);
}

}  // namespace
}  // namespace fullbore::cuda

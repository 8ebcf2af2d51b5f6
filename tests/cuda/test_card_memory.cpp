// Between host and card, on a driver that puts everything off until somebody waits for it.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "fullbore/base/error.h"
#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

using ::testing::Each;

std::vector<int64_t> numbers(size_t count, int64_t first) {
  std::vector<int64_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}
std::span<const std::byte> bytes_of(const std::vector<int64_t>& values) {
  return std::as_bytes(std::span(values));
}
std::vector<int64_t> read(const Device& device, Address from, size_t count) {
  std::vector<int64_t> values(count);
  device.read(from, std::as_writable_bytes(std::span(values)));
  return values;
}

using CardMemory = FakeCard;

TEST_F(CardMemory, IsZeroedAndKeepsWhatIsWritten) {
  const auto device = open();
  const auto memory = device->allocate(8 * 100);
  EXPECT_EQ(memory->bytes(), 800);
  EXPECT_THAT(read(*device, memory->address(), 100), Each(0));
  const std::vector<int64_t> values = numbers(50, 7);
  device->write(memory->address() + 80, bytes_of(values));
  EXPECT_EQ(read(*device, memory->address() + 80, 50), values);
  EXPECT_EQ(read(*device, memory->address(), 1), std::vector<int64_t>{0});
  // The host cannot follow the address.
  EXPECT_DEATH(
      {
        const auto* const there = reinterpret_cast<const volatile char*>(memory->address().value);
        (void)*there;
      },
      "");
}

TEST_F(CardMemory, CopiesWhereBothOverlap) {
  const auto device = open();
  const auto memory = device->allocate(8 * 20);
  device->write(memory->address(), bytes_of(numbers(10, 0)));
  device->copy(memory->address(), memory->address() + 8 * 3, 8 * 10);
  EXPECT_EQ(read(*device, memory->address() + 8 * 3, 10), numbers(10, 0));
  device->copy(memory->address() + 8 * 3, memory->address(), 8 * 10);
  EXPECT_EQ(read(*device, memory->address(), 10), numbers(10, 0));
}

// In pieces of 4 MiB, by two pinned pieces in turns; several threads make shares of each at once.
TEST_F(CardMemory, IsMadeAndLookedAtPieceByPiece) {
  for (const uint64_t seed : {0, 1, 2}) {
    fake().seed = seed;
    const auto device = open();
    constexpr int64_t kBytes = (9 << 20) + 64;
    const auto memory = device->allocate(kBytes);
    std::atomic<int64_t> made = 0, problems = 0;
    device->produce(memory->address(), kBytes, Pieces::any_order,
                    [&](int64_t offset, std::span<std::byte> piece) {
                      made += std::ssize(piece);
                      problems += offset % 64 != 0 ? 1 : 0;
                      for (const std::byte each : piece) problems += each != std::byte{0} ? 1 : 0;
                      for (size_t i = 0; i < piece.size(); i += 8) {
                        const int64_t value = offset + static_cast<int64_t>(i);
                        std::memcpy(&piece[i], &value, 8);
                      }
                    });
    EXPECT_EQ(made, kBytes);
    EXPECT_EQ(problems, 0);
    int64_t seen = 0;
    device->consume(memory->address(), kBytes, Pieces::in_order,
                    [&](int64_t offset, std::span<const std::byte> piece) {
                      EXPECT_EQ(offset, seen);
                      seen += static_cast<int64_t>(piece.size());
                      int64_t wrong = 0;
                      for (size_t i = 0; i < piece.size(); i += 8) {
                        int64_t value = 0;
                        std::memcpy(&value, &piece[i], 8);
                        wrong += value != offset + static_cast<int64_t>(i);
                      }
                      EXPECT_EQ(wrong, 0);
                    });
    EXPECT_EQ(seen, kBytes);
  }
}

// A snapshot has what the runs before it made, and nothing of those behind it, whenever it is copied.
TEST_F(CardMemory, SnapshotsBetweenRunsAreWhole) {
  for (const uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    fake().seed = seed;
    const auto device = open();
    const auto memory = device->allocate(8 * 64);
    const MixingKernel kernel;
    const auto recorder = device->record();
    // x = 3 x + x + 1
    const LaunchOperand x{.base = memory->address()};
    recorder->launch(0, *kernel.node, std::vector<LaunchOperand>{x, x, x}, true);
    const auto program = recorder->finish();
    program->run();
    const auto first = device->allocate_host(8 * 64), second = device->allocate_host(8 * 64 + 16);
    EXPECT_THAT(first->bytes(), Each(std::byte{0}));
    device->snapshot(std::vector<SnapshotPart>{{memory->address(), 0, 8 * 64}}, *first, true);
    program->run();
    device->snapshot(std::vector<SnapshotPart>{{memory->address(), 16, 8 * 32},
                                               {memory->address() + 8 * 32, 16 + 8 * 32, 8 * 32}},
                     *second, true);
    program->run();
    program->wait();
    second->wait();
    first->wait();
    const auto at = [](HostMemory& host, size_t offset) {
      int64_t value = 0;
      std::memcpy(&value, host.bytes().data() + offset, 8);
      return value;
    };
    EXPECT_EQ(at(*first, 0), 1) << seed;
    EXPECT_EQ(at(*second, 16 + 8 * 40), 5) << seed;
    EXPECT_EQ(read(*device, memory->address(), 1), std::vector<int64_t>{21}) << seed;
    device->write(memory->address(), bytes_of({0}));
    EXPECT_EQ(at(*second, 16), 5) << seed;
  }
}

}  // namespace
}  // namespace fullbore::cuda

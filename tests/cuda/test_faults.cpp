// A kernel that touches memory which is not its own: what errors say of the launches that it may have been.
#include <gmock/gmock.h>

#include <span>
#include <vector>

#include "fullbore/device/device_error.h"
#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kBytes = MixingKernel::kBytes;
constexpr const char* kNode = "add i64[64] (models/mixing.cpp:12)";

class Faults : public FakeCard {
 protected:
  // So that what they hold can be given back.
  void TearDown() override {
    close_card();
    FakeCard::TearDown();
  }
  void close_card() {
    restart();
    program_.reset();
    recorder_.reset();
    memory_.reset();
    device_.reset();
  }
  void open_card() {
    device_ = open();
    memory_ = device_->allocate(2 * kBytes);
    recorder_ = device_->record();
  }
  void launch(int id, Address at) {
    const LaunchOperand x{.base = at};
    recorder_->launch(id, *kernel_.node, std::vector<LaunchOperand>{x, x, x}, true);
  }
  Address good() const { return memory_->address(); }
  /// Its last word lies behind the memory.
  Address bad() const { return memory_->address() + kBytes + 8; }
  void finish() { program_ = recorder_->finish(); }
  std::string run_and_wait() {
    return message_of<DeviceError>([&] {
      program_->run();
      program_->wait();
    });
  }

  MixingKernel kernel_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Replayable> program_;
};

TEST_F(Faults, NameTheLaunchWhereThereIsOne) {
  open_card();
  launch(7, bad());
  finish();
  EXPECT_THAT(run_and_wait(),
              AllOf(HasSubstr("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
                    HasSubstr(std::string("Run 1 of a program of 1 kernels was under way on card "
                                          "0: launch 7, ") +
                              kNode),
                    HasSubstr("--resume"), Not(HasSubstr("FULLBORE_CUDA_BLOCKING"))));
}

TEST_F(Faults, NameTheLaunchesOfAGraphAndHowToFindTheOne) {
  open_card();
  launch(0, good());
  launch(1, bad());
  launch(2, good());
  finish();
  EXPECT_THAT(run_and_wait(), AllOf(HasSubstr("one of 3 launches, from launch 0, add i64[64] "
                                              "(models/mixing.cpp:12), to launch 2, "),
                                    HasSubstr("FULLBORE_CUDA_BLOCKING=1"), HasSubstr("--resume")));
}

TEST_F(Faults, NameTheLaunchInTheBlockingMode) {
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  open_card();
  launch(0, good());
  launch(1, bad());
  launch(2, good());
  finish();
  EXPECT_THAT(run_and_wait(),
              AllOf(HasSubstr(std::string("the kernel 'mix' of ") + kNode + " failed"),
                    HasSubstr("grid 2x1x1, block 32x1x1"), HasSubstr("ILLEGAL_ADDRESS")));
}

// A loop that the host steps: each look at its stop flag shows that all before has ended.
TEST_F(Faults, LeaveOutWhatWasWaitedFor) {
  fake().version = 12030;  // no conditional nodes
  open_card();
  launch(0, good());
  const LaunchOperand flag{.base = memory_->address() + kBytes};
  recorder_->begin_loop(1, {.iterations = 3, .stop = flag});
  launch(2, bad());
  recorder_->end_loop();
  launch(3, good());
  finish();
  EXPECT_THAT(run_and_wait(), HasSubstr("a program of 3 kernels was under way on card 0: "
                                        "one of 2 launches, from launch 0"));
  restart();
  open_card();
  launch(0, good());
  recorder_->begin_loop(1, {.iterations = 3, .count = LaunchOperand{.base = good()}});
  launch(2, bad());
  recorder_->end_loop();
  finish();
  EXPECT_THAT(run_and_wait(), HasSubstr("card 0: launch 2, "));
}

// A body that is a graph: its launches, behind what the last look has shown to have ended.
TEST_F(Faults, NameTheLaunchesOfABodysGraph) {
  fake().version = 12030;  // no conditional nodes
  open_card();
  launch(0, good());
  recorder_->begin_loop(1, {.iterations = 3, .count = LaunchOperand{.base = good()}});
  for (int id = 2; id < 6; ++id) launch(id, id == 4 ? bad() : good());
  recorder_->end_loop();
  finish();
  EXPECT_THAT(run_and_wait(), AllOf(HasSubstr("card 0: one of 4 launches, from launch 2, "),
                                    HasSubstr("to launch 5, "), HasSubstr("--resume")));
}

TEST_F(Faults, NameTheLaunchesAroundConditionalNodes) {
  open_card();
  const int64_t count = 2;
  device_->write(good(), std::as_bytes(std::span(&count, 1)));
  recorder_->begin_loop(1, {.iterations = 3, .count = LaunchOperand{.base = good()}});
  for (int id = 2; id < 6; ++id) launch(id, id == 4 ? bad() : good());
  recorder_->end_loop();
  launch(6, good());
  finish();
  EXPECT_THAT(run_and_wait(), AllOf(HasSubstr("card 0: one of 5 launches, from launch 2, "),
                                    HasSubstr("to launch 6, "), HasSubstr("--resume")));
}

// Whichever call meets it first: by then the launches may have failed at any time.
TEST_F(Faults, AreToldByWhicheverCallMeetsThem) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    fake().seed = seed;
    const auto failure = [&](const auto& action) {
      open_card();
      launch(0, good());
      launch(1, bad());
      finish();
      const auto host = device_->allocate_host(kBytes);
      const std::string message = message_of<DeviceError>([&] {
        program_->run();
        action(*host);
      });
      EXPECT_THAT(message,
                  AllOf(HasSubstr("Run 1 of a program of 2 kernels"), HasSubstr("from launch 0, ")))
          << seed;
      close_card();
    };
    std::vector<std::byte> bytes(8);
    failure([&](HostMemory&) { device_->read(good(), bytes); });
    failure([&](HostMemory&) { device_->write(good(), bytes); });
    failure([&](HostMemory&) { device_->copy(good(), good() + kBytes, 8); });
    failure([&](HostMemory& to) {
      device_->snapshot(std::vector<SnapshotPart>{{good(), 0, kBytes}}, to, false);
      to.wait();
    });
  }
  reset();  // an event of a call that failed could not be given back
}

// Of two programs the one that was waited for is not named.
TEST_F(Faults, DoNotNameWhatHasEnded) {
  open_card();
  launch(0, good());
  launch(1, good());
  finish();
  program_->run();
  program_->run();
  program_->wait();
  const auto first = std::move(program_);
  recorder_ = device_->record();
  launch(5, bad());
  finish();
  const std::string message = run_and_wait();
  EXPECT_THAT(message, HasSubstr("launch 5"));
  EXPECT_THAT(message, Not(HasSubstr("a program of 2 kernels")));
  restart();
}

}  // namespace
}  // namespace fullbore::cuda

#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {

/// Tests of recorded programs with loops, over one memory of rows of 64-bit words.
class LoopPrograms : public FakeCard {
 protected:
  static constexpr int64_t kBytes = MixingKernel::kBytes;  ///< of a row
  static constexpr size_t kWords = MixingKernel::kElements;
  /// Drivers that have conditional nodes, and that have them not as they are needed.
  static constexpr int64_t kWithConditionalNodes = 12040, kWithoutConditionalNodes = 12030;

  using Words = std::vector<uint64_t>;
  struct Outcome {
    Words memory;
    std::vector<int64_t> iterations;                      ///< of each loop that is asked for
    int64_t calls = 0, graph_launches = 0, launches = 0;  ///< of a run
    int64_t waits = 0;  ///< and other orders, until the run has been told
  };
  using Record = std::function<void(Recorder&, Address)>;

  /// What the second of two runs does.
  static Outcome outcome_of(const Words& before, const std::vector<int>& loops,
                            const Record& record);
  /// By graphs as the driver allows, in some orders that are drawn and with the other kind of driver, and launch by launch:
  /// the same bits and the same counts. Returns how it went by graphs.
  static Outcome checked(const Words& before, const std::vector<int>& loops, const Record& record);

  /// The first word is a count.
  static Words drawn(size_t rows, uint64_t count = 0);
  static LaunchOperand row(Address memory, int64_t index, std::vector<int64_t> strides = {}) {
    return {.base = memory + index * kBytes, .strides = std::move(strides)};
  }
  /// What a loop at this depth exchanges with `there`.
  static LaunchOperand exchanged(LaunchOperand here, const LaunchOperand& there, size_t depth) {
    here.exchanged_by = {depth};
    here.exchanged_bases = {here.base, there.base};
    return here;
  }
  void mix(Recorder& recorder, int id, const LaunchOperand& x, const LaunchOperand& y,
           const LaunchOperand& to) const {
    recorder.launch(id, *kernel_.node, std::vector<LaunchOperand>{x, y, to}, true);
  }

  MixingKernel kernel_;
};

}  // namespace fullbore::cuda

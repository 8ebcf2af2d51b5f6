#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/ptx/memory.h"

namespace fullbore::ptx {

/// A barrier in shared memory: each of its phases ends when so many arrivals and so many bytes have come. Source: PTX ISA
/// 9.7.12.15.
struct Mbarrier {
  static constexpr int64_t kMost = (1 << 20) - 1;  ///< arrivals, and bytes either way

  int64_t offset = 0;  ///< in the shared memory of its block
  uint32_t number = 0;
  uint32_t count = 0;    ///< arrivals of each phase
  uint32_t pending = 0;  ///< arrivals that the phase still lacks
  int64_t bytes = 0;  ///< that it lacks; below zero where they were there before they were expected
  uint32_t phase = 0;                 ///< that has not ended
  Access made;                        ///< by mbarrier.init
  Access shown;                       ///< by a fence behind it
  Clock arrived;                      ///< what those knew that have arrived
  Clock over;                         ///< the same, of phases that are over
  uint32_t last_brought = 0;          ///< phase that got bytes last, plus 1; 0: none did
  std::map<uint64_t, uint32_t> sent;  ///< by threads of other blocks: their steps when they arrived

  /// Bytes have come, or (below zero) are expected. False: too many.
  bool add_bytes(int64_t come);
  /// False: more than the phase lacks.
  bool arrive(uint32_t arrivals);
  /// Ends the phase if nothing is lacking. `number_in_grid`: Block::mbarrier_number.
  void end_phase(uint64_t number_in_grid);
};

/// Those of a block.
class Mbarriers {
 public:
  static constexpr uint32_t kMost = 56;

  explicit Mbarriers(size_t shared_bytes) : is_one_(shared_bytes / 8) {}
  Mbarrier* find(int64_t offset);
  /// Null: there are too many.
  Mbarrier* add(int64_t offset);
  /// Is one at one of the bytes?
  bool overlap(int64_t offset, int64_t bytes) const;
  const std::map<int64_t, Mbarrier>& all() const { return all_; }

 private:
  std::map<int64_t, Mbarrier> all_;
  std::vector<bool> is_one_;
};

}  // namespace fullbore::ptx

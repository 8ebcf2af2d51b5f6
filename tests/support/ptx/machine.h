#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ptx/memory.h"
#include "tests/support/ptx/module.h"

namespace fullbore::ptx {

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct Launch {
  const Kernel* kernel = nullptr;
  Extent grid = {};
  Extent block = {};
  int64_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  uint64_t seed = 1;  ///< of the order in which blocks and threads are run
  /// cudaGraphSetConditional, which sets a condition of the graph that the launch is a node of; false: it has no such one.
  std::function<bool(uint64_t condition, uint32_t value)> set_condition = {};
};

/// What a launch did.
struct LaunchCounts {
  int64_t instructions = 0;  ///< of all threads
  int64_t shared_bytes = 0;
};

/// Runs the launch to its end, blocks and threads in an order that follows from the seed. Registers hold noise at first.
///
/// Fault: an access beyond an allocation, or that is not aligned; two accesses of one byte, one of which writes, that
/// nothing orders; bytes that cp.async brings and that are touched before they were waited for;
/// bytes that tensor cores read without a fence behind the write, or that are written before that was waited for; threads of a warp that do
/// not meet where they have to, or wait for ever; more instructions than `most_instructions` of one thread; shared
/// memory that no GPU has.
LaunchCounts run(const Launch& launch, DeviceMemory& memory,
                 int64_t most_instructions = 100'000'000);

/// Generic addresses of a block's shared memory and a thread's local memory.
inline constexpr uint64_t kSharedWindow = 0x0100'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x0200'0000'0000;

class Block;

/// A thread.
class Lane {
 public:
  enum class State : uint8_t { runs, waits, done };

  Lane(Block& block, uint32_t number);

  uint64_t* slots() { return slots_.data(); }
  bool& carry() { return carry_; }  ///< of sums in several words
  /// The bytes at an address of the space, checked and noted as an access of this thread.
  std::byte* reach(Space space, uint64_t address, int64_t bytes, int64_t alignment, bool write,
                   bool is_atomic = false);
  [[noreturn]] void fail(const std::string& what) const;

  // cp.async: bytes of shared memory that come when they are waited for; those from `read` on are zeros.
  void copy_later(uint64_t shared, uint64_t global, int64_t bytes, int64_t read);
  void commit_copies() { copies_.emplace_back(); }
  void wait_for_copies(int64_t groups_left);

  /// Of the graph.
  void set_condition(uint64_t condition, uint32_t value) const;

  // wgmma: products that tensor cores make beside the threads (warpgroup.cpp). Their sums are noise until waited for.
  void order_sums() { are_sums_ordered_ = true; }
  void commit_products() { products_.emplace_back(); }
  void wait_for_products(int64_t groups_left);
  /// The sums as they will be; `chunks`: of 16 bytes of shared memory, that are read until then.
  std::vector<float>& begin_product(const Instruction& i, std::array<uint64_t, 2> operands,
                                    bool adds, std::vector<uint32_t> chunks);
  const std::byte* read_for_products(uint64_t address, int64_t bytes);
  /// fence.proxy.async: tensor cores may read what it has written.
  void show_to_products();
  uint64_t products_made() const { return products_made_; }  ///< a digest of all of them

  /// Until it waits for others, or ends.
  void run(int64_t most_instructions);

  uint32_t number() const { return number_; }  ///< in the block
  State state() const { return state_; }
  const Instruction& instruction() const;  ///< the next
  int position() const { return position_; }
  int64_t instructions() const { return instructions_; }
  /// It need not wait any more.
  void go_on(bool behind_block, bool behind_warp);

 private:
  struct PendingCopy {
    int64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  struct PendingProduct {
    int sums = 0;
    std::vector<uint32_t> chunks;
  };
  struct PendingSums {
    int products = 0;  ///< that are not complete
    const Instruction* instruction = nullptr;
    std::vector<float> values;
  };
  Access access(bool is_atomic) const;
  [[noreturn]] void fail_race(const Access& earlier, uint64_t address, bool write) const;

  Block& block_;
  uint32_t number_;
  int position_ = 0;
  State state_ = State::runs;
  uint32_t block_phase_ = 0, warp_phase_ = 0;
  bool carry_ = false;
  int64_t instructions_ = 0;
  std::vector<uint64_t> slots_;
  std::vector<std::byte> local_;
  std::vector<std::vector<PendingCopy>> copies_ = {
      {}};  ///< committed groups, and the one that is not
  std::vector<std::vector<PendingProduct>> products_ = {{}};  ///< likewise
  std::map<int, PendingSums> sums_;                           ///< by the first slot
  bool are_sums_ordered_ = false;
  uint64_t products_made_ = 0;
  std::vector<std::pair<int64_t, int64_t>> unshown_;  ///< places and bytes, written since a fence
};

}  // namespace fullbore::ptx

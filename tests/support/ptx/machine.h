#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

/// Runs the launch to its end, clusters of blocks and their threads in an order that follows from the seed. Registers hold noise
/// at first, and copies of boxes of tensors are complete as late as the seed wants.
///
/// Fault: an access beyond an allocation, or that is not aligned; two accesses of one byte, one of which writes, that
/// nothing orders; bytes that cp.async brings and that are touched before they were waited for;
/// bytes that tensor cores read without a fence behind the write, or that are written before that was waited for; mbarriers
/// that are used as what they are not, or whose counts run over; a block that ends while others still send it something; threads of a
/// warp that do not meet where they have to, or wait for ever; more instructions than `most_instructions` of one thread; shared
/// memory that no GPU has.
LaunchCounts run(const Launch& launch, DeviceMemory& memory,
                 int64_t most_instructions = 100'000'000);

/// Generic addresses of a block's shared memory, a thread's local memory and the parameters. Each window ends where the next
/// begins, 2^40 bytes further.
inline constexpr uint64_t kSharedWindow = 0x0100'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x0200'0000'0000;
inline constexpr uint64_t kParameterWindow = 0x0300'0000'0000;
inline constexpr uint64_t kWindowBytes = 0x0100'0000'0000;
/// Addresses of shared memory of a cluster: those of the block's own; and of the block of rank r, from r + 1 times this on.
inline constexpr uint64_t kRankBytes = uint64_t{1} << 24;

class Block;
struct Mbarrier;

/// A thread.
class Lane {
 public:
  enum class State : uint8_t {
    runs,
    waits,   ///< where threads meet
    sleeps,  ///< at an instruction that it makes again when it is woken
    done
  };

  Lane(Block& block, uint32_t number);

  uint64_t* slots() { return slots_.data(); }
  bool& carry() { return carry_; }  ///< of sums in several words
  /// The bytes at an address of the space, checked and noted as an access of this thread, or as `other` (of tensor cores).
  std::byte* reach(Space space, uint64_t address, int64_t bytes, int64_t alignment, bool write,
                   bool is_atomic = false, const Access* other = nullptr);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_waiting() const;  ///< what it waits for never comes

  // cp.async: bytes of shared memory that come when they are waited for; those from `read` on are zeros.
  void copy_later(uint64_t shared, uint64_t global, int64_t bytes, int64_t read);
  void commit_copies() { copies_.emplace_back(); }
  void wait_for_copies(int64_t groups_left);

  /// Of the graph.
  void set_condition(uint64_t condition, uint32_t value) const;

  // wgmma: products that tensor cores make beside the threads (warpgroup.cpp). Their sums are noise until waited for.
  void order_sums() { are_sums_ordered_ = true; }
  void commit_products() { products_.emplace_back(), ++groups_committed_; }
  void wait_for_products(int64_t groups_left);
  uint32_t groups_committed() const { return groups_committed_; }
  /// The sums as they will be.
  std::vector<float>& begin_product(const Instruction& i, std::array<uint64_t, 2> operands,
                                    bool adds);
  const std::byte* read_for_products(uint64_t address, int64_t bytes);
  /// fence.proxy.async: tensor cores and copies of boxes may touch what it has written; or its mbarriers alone.
  void show_to_others(bool mbarriers_alone);
  uint64_t products_made() const { return products_made_; }  ///< a digest of all of them

  // mbarrier and cluster (mbarrier.cpp). Addresses are of shared memory of the cluster.
  void init_mbarrier(uint64_t address, uint32_t count);
  void arrive(uint64_t address, uint32_t count);
  void expect(uint64_t address, uint32_t bytes);
  /// Is the phase of that parity over? If not, it sleeps, and makes the instruction again; nothing: so it does now.
  std::optional<bool> try_wait(uint64_t address, uint32_t parity);
  uint64_t address_in(uint64_t address, uint32_t rank) const;
  void arrive_at_cluster();
  uint32_t cluster_arrivals() const { return cluster_arrivals_; }
  /// Behind the barrier of the cluster that it waits at.
  void leave_cluster_barrier(const Clock& others);

  /// cp.async.bulk.tensor (tensor_copy.cpp): `to`, `mbarrier`: addresses of shared memory of the cluster; `ranks`: a bit for each
  /// block that gets it, at its own such place; 0: the one of the address.
  void copy_box(uint64_t to, uint64_t map, std::span<const int32_t> at, uint64_t mbarrier,
                uint32_t ranks);

  // Clocks, if it has one (clock.h).
  void tell(Clock& others);  ///< all that it has done; its next step begins
  void learn(const Clock& from);
  const Clock& clock() const { return clock_; }

  /// Until it waits for others, sleeps, or ends.
  void run(int64_t most_instructions);
  /// Of one that sleeps: is there what it waits for?
  bool can_wake() const;
  /// Waits for phases of mbarriers end when too much time has passed.
  bool can_time_out() const { return awaited_.mbarrier != nullptr; }
  void wake(bool is_timeout);

  Block& block() { return block_; }
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
  /// What it sleeps for: a phase of an mbarrier, or that its warpgroup has made so many groups of products.
  struct Awaited {
    const Mbarrier* mbarrier = nullptr;
    uint32_t parity = 0;
    uint32_t groups = 0;
  };
  struct PendingSums {
    int products = 0;  ///< that are not complete
    const Instruction* instruction = nullptr;
    std::vector<float> values;
  };
  Access access(bool is_atomic) const;
  Order order() const;
  /// Is it ordered behind that access?
  bool knows(const Access& earlier) const;
  [[noreturn]] void fail_race(const Access& earlier, uint64_t address, bool write) const;
  struct Place {
    Block* block = nullptr;
    int64_t offset = 0;
  };
  void sleep(const Awaited& awaited);
  Place place_of(uint64_t address) const;
  Mbarrier& mbarrier_at(const Place& place, uint64_t told) const;
  void begin_write_of_copy(Block& block, int64_t offset, int64_t bytes);

  Block& block_;
  uint32_t number_;
  int position_ = 0;
  State state_ = State::runs;
  bool is_again_ = false;   ///< it makes its instruction once more
  bool timed_out_ = false;  ///< it was woken though what it waits for is not there
  Awaited awaited_;
  uint32_t block_phase_ = 0, warp_phase_ = 0;
  uint32_t step_ = 0;
  Clock clock_;
  uint32_t cluster_arrivals_ = 0, cluster_waits_ = 0;
  bool carry_ = false;
  int64_t instructions_ = 0;
  std::vector<uint64_t> slots_;
  std::vector<std::byte> local_;
  std::vector<std::vector<PendingCopy>> copies_ = {
      {}};                                         ///< committed groups, and the one that is not
  std::vector<std::vector<int>> products_ = {{}};  ///< likewise: the first slots of their sums
  uint32_t groups_committed_ = 0;
  std::map<int, PendingSums> sums_;  ///< by the first slot
  bool are_sums_ordered_ = false;
  uint64_t products_made_ = 0;
  std::vector<std::pair<int64_t, int64_t>> unshown_;  ///< places and bytes, written since a fence
};

}  // namespace fullbore::ptx

#include "fullbore/device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/cublaslt/found_libraries.h"
#include "fullbore/device/cuda/cuda_compiler.h"
#include "fullbore/device/cuda/driver/driver.h"
#include "fullbore/device/cuda/driver/launch_occupancy.h"
#include "fullbore/device/cuda/executor/compiled_node.h"
#include "fullbore/device/cuda/executor/cuda_replay.h"
#include "fullbore/device/cuda/measure_peaks.h"
#include "fullbore/device/registry.h"

namespace fullbore::cuda {
namespace {

// Where transactions of the memory begin, and what bulk copies ask for.
constexpr int64_t kAlignment = 256;
// Of contents that pass through pinned memory: large enough for the bus, small beside a model.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kLine = 64;                    // of a processor's cache
constexpr int64_t kFewBytes = int64_t{1} << 20;  // that no other thread is woken for

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Has what the flag stands for, unless another thread, or this one further up, has it.
class Claim {
 public:
  explicit Claim(std::atomic_flag& is_taken)
      : is_taken_(is_taken), is_mine_(!is_taken.test_and_set()) {}
  ~Claim() {
    if (is_mine_) is_taken_.clear();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  bool is_mine() const { return is_mine_; }

 private:
  std::atomic_flag& is_taken_;
  bool is_mine_;
};

class Block final : public DeviceMemory {
 public:
  Block(const std::shared_ptr<Context>& context, int64_t bytes)
      : memory_(context, bytes), bytes_(bytes) {
    const Driver& driver = context->enter();
    if (bytes > 0) driver.fill_bytes(memory_.get(), 0, static_cast<size_t>(bytes), context->main());
    driver.wait_for_stream(context->main());
  }
  Address address() const override { return {memory_.get()}; }
  int64_t bytes() const override { return bytes_; }

 private:
  CardMemory memory_;
  int64_t bytes_;
};

}  // namespace

class PinnedBlock final : public HostMemory {
 public:
  PinnedBlock(std::shared_ptr<Context> context, int64_t bytes)
      : context_(std::move(context)), memory_(context_, bytes), copied_(context_), bytes_(bytes) {}
  ~PinnedBlock() override {
    if (const Driver* const driver = context_->enter_to_destroy())
      driver->wait_for_event.attempt(copied_.get());
  }
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  std::span<std::byte> bytes() override { return {memory_.get(), static_cast<size_t>(bytes_)}; }
  void wait() override { context_->enter().wait_for_event(copied_.get()); }
  EventHandle copied() const { return copied_.get(); }

 private:
  std::shared_ptr<Context> context_;
  PinnedMemory memory_;
  Event copied_;
  int64_t bytes_;
};

namespace {

class HostBlock final : public DeviceMemory {
 public:
  HostBlock(const std::shared_ptr<Context>& context, int64_t bytes)
      : memory_(context, bytes), bytes_(bytes) {}
  Address address() const override { return memory_.address(); }
  int64_t bytes() const override { return bytes_; }

 private:
  HostState memory_;
  int64_t bytes_;
};

std::shared_ptr<Device> open(const std::string& name, int) {
  return std::make_shared<CudaDevice>(name);
}
std::shared_ptr<Device> open_with_moments_in_host(const std::string& name, int) {
  return std::make_shared<CudaDevice>(name, true);
}

int64_t free_bytes(const std::string& name) {
  const Context context(load_driver(), card_number(name));
  size_t free = 0, total = 0;
  context.enter().memory_left(&free, &total);
  return static_cast<int64_t>(free);
}

const RegisteredDevice registered({.name = "cuda",
                                   .summary = "an NVIDIA card (cuda:1 for the second)",
                                   .open = open,
                                   .libraries = found_libraries,
                                   .own_memory_bytes = free_bytes,
                                   .open_with_moments_in_host = open_with_moments_in_host});

}  // namespace

CudaDevice::CudaDevice(const std::string& name, bool moments_in_host)
    : name_(name), moments_in_host_(moments_in_host), context_([&] {
        const int number = card_number(name);
        return std::make_shared<Context>(load_driver(), number);
      }()) {}
CudaDevice::~CudaDevice() = default;

Target CudaDevice::target() const { return cuda_target(context_->card().facts); }

// One worker: a launch fills the card by itself, and thread groups side by side would only take memory.
DeviceFacts CudaDevice::facts() const {
  return {.name = name_,
          .hardware = context_->hardware(),
          .alignment = kAlignment,
          .group_alignment = kAlignment,
          .workers = 1,
          .moments_in_host = moments_in_host_};
}

std::unique_ptr<DeviceMemory> CudaDevice::allocate(int64_t bytes) {
  return std::make_unique<Block>(context_, bytes);
}

std::unique_ptr<DeviceMemory> CudaDevice::allocate_in_host(int64_t bytes) {
  return std::make_unique<HostBlock>(context_, bytes);
}

std::unique_ptr<HostMemory> CudaDevice::allocate_host(int64_t bytes) {
  return std::make_unique<PinnedBlock>(context_, bytes);
}

// State in the host's memory behind all runs so far and their copies, and null where the address is the card's.
std::byte* CudaDevice::host_state(Address address) const {
  std::byte* const host = context_->in_host(address);
  if (host == nullptr) return nullptr;
  context_->enter().wait_for_stream(context_->main());
  context_->wait_for_copies();
  return host;
}

void CudaDevice::write(Address to, std::span<const std::byte> from) {
  if (from.empty()) return;
  if (std::byte* const host = host_state(to)) {
    std::memcpy(host, from.data(), from.size());
    return;
  }
  const Driver& driver = context_->enter();
  driver.copy_in(to.value, from.data(), from.size(), context_->main());
  driver.wait_for_stream(context_->main());
}

void CudaDevice::read(Address from, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (const std::byte* const host = host_state(from)) {
    std::memcpy(to.data(), host, to.size());
    return;
  }
  const Driver& driver = context_->enter();
  driver.copy_out(to.data(), from.value, to.size(), context_->main());
  driver.wait_for_stream(context_->main());
}

// Where both overlap, a copy by the card is not defined: it goes by other memory.
void CudaDevice::copy(Address from, Address to, int64_t bytes) {
  if (bytes <= 0 || from == to) return;
  const auto count = static_cast<size_t>(bytes);
  if (const std::byte* const host = host_state(from)) {
    if (std::byte* const other = context_->in_host(to))
      std::memmove(other, host, count);
    else
      write(to, {host, count});
    return;
  }
  if (std::byte* const host = host_state(to)) return read(from, {host, count});
  const Driver& driver = context_->enter();
  std::unique_ptr<CardMemory> aside;
  if (from < to + bytes && to < from + bytes) {
    aside = std::make_unique<CardMemory>(context_, bytes);
    driver.copy(aside->get(), from.value, count, context_->main());
  }
  driver.copy(to.value, aside ? aside->get() : from.value, count, context_->main());
  driver.wait_for_stream(context_->main());
}

/// Two pieces of pinned memory that contents pass through. The device keeps those of its first use, for to pin memory takes
/// longer than to copy a piece; who finds them taken has others.
class CudaDevice::Staging {
 public:
  explicit Staging(const CudaDevice& device) : claim_(device.staging_is_taken_) {
    slots_ = claim_.is_mine() ? &device.staging_ : &own_;
    for (std::unique_ptr<PinnedBlock>& slot : *slots_)
      if (!slot) slot = std::make_unique<PinnedBlock>(device.context_, kPieceBytes);
  }
  PinnedBlock& slot(int64_t turn) const { return *(*slots_)[static_cast<size_t>(turn % 2)]; }

 private:
  Claim claim_;
  Slots own_;
  Slots* slots_;
};

// While one piece is on its way the next is made, by several threads where the order does not matter.
void CudaDevice::produce(Address to, int64_t bytes, Pieces order, const Produce& produce) {
  if (bytes <= 0) return;
  // `is_old`: something else has been there, in place of zeros.
  const auto make = [&](int64_t offset, std::span<std::byte> piece, bool is_old) {
    const Claim pool(pool_is_taken_);
    if (order == Pieces::in_order || bytes < kFewBytes || !pool.is_mine()) {
      if (is_old) std::memset(piece.data(), 0, piece.size());
      produce(offset, piece);
      return;
    }
    const auto count = static_cast<int64_t>(piece.size());
    if (!pool_) pool_ = std::make_unique<ThreadPool>(available_processors());
    pool_->parallel_for(divide_up(count, kLine), [&](int64_t begin, int64_t end) {
      const auto first = static_cast<size_t>(begin * kLine);
      const std::span<std::byte> part =
          piece.subspan(first, static_cast<size_t>(std::min(end * kLine, count)) - first);
      if (is_old) std::memset(part.data(), 0, part.size());
      produce(offset + begin * kLine, part);
    });
  };
  const int64_t piece_bytes = std::min(bytes, kPieceBytes);
  if (std::byte* const host = host_state(to)) {
    for (int64_t offset = 0; offset < bytes; offset += piece_bytes)
      make(offset, {host + offset, static_cast<size_t>(std::min(piece_bytes, bytes - offset))},
           false);
    return;
  }
  const Driver& driver = context_->enter();
  const Staging staging(*this);
  for (int64_t offset = 0, turn = 0; offset < bytes; offset += piece_bytes, ++turn) {
    PinnedBlock& slot = staging.slot(turn);
    slot.wait();
    const auto count = static_cast<size_t>(std::min(piece_bytes, bytes - offset));
    const std::span<std::byte> piece = slot.bytes().first(count);
    make(offset, piece, true);
    context_->enter();  // whatever the caller did meanwhile
    driver.copy_in((to + offset).value, piece.data(), count, context_->main());
    driver.record_event(slot.copied(), context_->main());
  }
  driver.wait_for_stream(context_->main());
}

void CudaDevice::consume(Address from, int64_t bytes, Pieces, const Consume& consume) const {
  if (bytes <= 0) return;
  const int64_t piece_bytes = std::min(bytes, kPieceBytes);
  if (const std::byte* const host = host_state(from)) {
    for (int64_t offset = 0; offset < bytes; offset += piece_bytes)
      consume(offset, {host + offset, static_cast<size_t>(std::min(piece_bytes, bytes - offset))});
    return;
  }
  const Staging staging(*this);
  const auto fetch = [&](int64_t offset) {
    const Driver& driver = context_->enter();
    PinnedBlock& slot = staging.slot(offset / piece_bytes);
    const auto count = static_cast<size_t>(std::min(piece_bytes, bytes - offset));
    driver.copy_out(slot.bytes().data(), (from + offset).value, count, context_->main());
    driver.record_event(slot.copied(), context_->main());
  };
  fetch(0);
  for (int64_t offset = 0; offset < bytes; offset += piece_bytes) {
    if (offset + piece_bytes < bytes) fetch(offset + piece_bytes);
    PinnedBlock& slot = staging.slot(offset / piece_bytes);
    slot.wait();
    consume(offset, slot.bytes().first(static_cast<size_t>(std::min(piece_bytes, bytes - offset))));
  }
}

// Copies go on while the host does other things; what the main stream is told from now on comes behind them.
void CudaDevice::snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool) {
  auto* const pinned = dynamic_cast<PinnedBlock*>(&to);
  FB_CHECK(pinned != nullptr, "a snapshot goes to memory of the device's own allocate_host()");
  const Driver& driver = context_->enter();
  const Event runs_so_far(context_);
  driver.record_event(runs_so_far.get(), context_->main());
  driver.wait_in_stream(context_->snapshots(), runs_so_far.get(), 0);
  for (const SnapshotPart& part : parts) {
    FB_CHECK(
        part.offset >= 0 && part.offset + part.bytes <= static_cast<int64_t>(to.bytes().size()),
        "{} bytes at {} of host memory of {}", part.bytes, part.offset, to.bytes().size());
    if (part.bytes > 0 && context_->in_host(part.from) == nullptr)
      driver.copy_out(to.bytes().data() + part.offset, part.from.value,
                      static_cast<size_t>(part.bytes), context_->snapshots());
  }
  driver.record_event(pinned->copied(), context_->snapshots());
  driver.wait_in_stream(context_->main(), pinned->copied(), 0);
  // What the host has it copies by itself, for the driver would too, and let it wait.
  for (const SnapshotPart& part : parts)
    if (const std::byte* const host = part.bytes > 0 ? host_state(part.from) : nullptr)
      std::memcpy(to.bytes().data() + part.offset, host, static_cast<size_t>(part.bytes));
}

std::unique_ptr<Compiler> CudaDevice::compiler() {
  return std::make_unique<CudaCompiler>(context_);
}

std::unique_ptr<Recorder> CudaDevice::record() { return std::make_unique<CudaRecorder>(context_); }

MeasuredPeaks CudaDevice::measure_peaks(const PeakMemory& memory) {
  context_->wait_for_copies();  // they may read the memory that is lent
  return cuda::measure_peaks(context_, memory);
}

std::optional<Occupancy> CudaDevice::occupancy(const Kernel& kernel) {
  const auto* const node = dynamic_cast<const CompiledNode*>(&kernel);
  FB_CHECK(node != nullptr, "'{}' is no kernel of this device", kernel.description());
  std::optional<Occupancy> lowest;
  for (const Launch& launch : node->launches()) {
    const Occupancy each = launch_occupancy(*context_, launch);
    if (!lowest || each.share < lowest->share) lowest = each;
  }
  return lowest;
}

}  // namespace fullbore::cuda

#include "fullbore/device/cpu/cpu_device.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/meet_pages.h"
#include "fullbore/base/processor_facts.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/device/cpu/cpu_compiler.h"
#include "fullbore/device/cpu/executor/thread_replay.h"
#include "fullbore/device/cpu/libraries.h"
#include "fullbore/device/cpu/peaks/measure_peaks.h"
#include "fullbore/device/registry.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kLine = 64;  // of the caches, and a register of AVX-512

char* pointer(Address address) { return reinterpret_cast<char*>(address.value); }

std::shared_ptr<Device> open(const std::string&, int threads) {
  return std::make_shared<CpuDevice>(threads);
}

const RegisteredDevice registered({.name = "cpu",
                                   .summary = "the processor, by generated code and kernels",
                                   .open = open,
                                   .libraries = libraries});

}  // namespace

CpuDevice::CpuDevice(int threads)
    : facts_({.name = "cpu",
              .hardware = processor_name(),
              .alignment = kLine,
              .workers = threads > 0 ? threads : available_processors()}) {}
CpuDevice::~CpuDevice() = default;

ThreadPool& CpuDevice::pool() const {
  if (!pool_) pool_ = std::make_unique<ThreadPool>(facts_.workers);
  return *pool_;
}

Target CpuDevice::target() const { return cpu_target(facts_.workers); }

template <class Body>
void CpuDevice::in_pieces(int64_t bytes, Pieces order, const Body& body) const {
  if (bytes == 0) return;
  if (order == Pieces::in_order) return body(int64_t{0}, bytes);
  pool().parallel_for((bytes + kLine - 1) / kLine, [&](int64_t begin, int64_t end) {
    body(begin * kLine, std::min(end * kLine, bytes));
  });
}

void CpuDevice::produce(Address to, int64_t bytes, Pieces order, const Produce& produce) {
  auto* const memory = reinterpret_cast<std::byte*>(pointer(to));
  in_pieces(bytes, order, [&](int64_t begin, int64_t end) {
    produce(begin, {memory + begin, memory + end});
  });
}

void CpuDevice::consume(Address from, int64_t bytes, Pieces order, const Consume& consume) const {
  const auto* const memory = reinterpret_cast<const std::byte*>(pointer(from));
  in_pieces(bytes, order, [&](int64_t begin, int64_t end) {
    consume(begin, {memory + begin, memory + end});
  });
}

// In pieces of a huge page, so that workers have equal shares whatever the sizes of tensors.
void CpuDevice::snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool to_is_zero) {
  constexpr int64_t kPiece = int64_t{2} << 20;
  char* const memory = reinterpret_cast<char*>(to.bytes().data());
  struct Piece {
    const char* from;
    char* to;
    int64_t bytes;
  };
  std::vector<Piece> pieces;
  for (const SnapshotPart& part : parts) {
    const char* from = pointer(part.from);
    char* target = memory + part.offset;
    for (int64_t left = part.bytes; left > 0;) {
      // What follows on the last piece in both memories becomes part of it.
      const bool follows = !pieces.empty() && pieces.back().bytes < kPiece &&
                           pieces.back().from + pieces.back().bytes == from &&
                           pieces.back().to + pieces.back().bytes == target;
      if (!follows) pieces.push_back({from, target, 0});
      const int64_t count = std::min(left, kPiece - pieces.back().bytes);
      pieces.back().bytes += count;
      from += count;
      target += count;
      left -= count;
    }
  }
  // In turns: what is not zero then lies together, and would be one worker's.
  const int64_t workers = pool().workers();
  pool().parallel_for(workers, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker)
      for (auto i = static_cast<size_t>(worker); i < pieces.size();
           i += static_cast<size_t>(workers)) {
        const Piece& piece = pieces[i];
        // Before the first step most of a State is zero, as new memory is: no page is met for that.
        if (!to_is_zero || !is_zero(piece.from, piece.bytes))
          copy_past_caches(piece.to, piece.from, piece.bytes);
      }
  });
}

void CpuDevice::expect_writes(Address memory, int64_t bytes, Extent extent) {
  choose_pages(pointer(memory), bytes, extent == Extent::whole);
}

void CpuDevice::make_resident(Address memory, int64_t bytes) {
  meet_pages(pointer(memory), bytes, pool());
}

std::unique_ptr<Compiler> CpuDevice::compiler() { return std::make_unique<CpuCompiler>(); }

std::unique_ptr<Recorder> CpuDevice::record() { return std::make_unique<ThreadRecorder>(pool()); }

MeasuredPeaks CpuDevice::measure_peaks(const PeakMemory& memory) {
  return cpu::measure_peaks(
      pool(), memory,
      {pointer(memory.lent), memory.lent_bytes > 0 ? static_cast<size_t>(memory.lent_bytes) : 0});
}

}  // namespace fullbore::cpu

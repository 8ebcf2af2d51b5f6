#include "fullbore/device/cuda/executor/batch_staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/executor/compiled_node.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kAlignment = 256;

/// Of a walk over a recorded program, with the iterations of the loops around.
class FieldSizes {
 public:
  void launches(std::span<const RecordedLaunch> launches) {
    for (const RecordedLaunch& launch : launches) {
      switch (launch.kind) {
        case RecordedLaunch::Kind::kernel: kernel(launch); break;
        case RecordedLaunch::Kind::copy:
          for (const LaunchOperand& operand : launch.operands) meet(operand, launch.bytes);
          break;
        case RecordedLaunch::Kind::loop: loop(*launch.loop); break;
      }
    }
  }
  std::vector<int64_t> take() { return std::move(bytes_); }

 private:
  void kernel(const RecordedLaunch& launch) {
    const auto* const node = dynamic_cast<const CompiledNode*>(launch.kernel);
    FB_CHECK(node != nullptr, "'{}' is no kernel of a CUDA device", launch.kernel->description());
    for (size_t i = 0; i < launch.operands.size(); ++i)
      meet(launch.operands[i], i < node->operand_bytes().size() ? node->operand_bytes()[i] : 0);
  }
  void loop(const RecordedLoop& loop) {
    const LoopRange& range = loop.range;
    if (range.count) meet(*range.count, sizeof(int64_t));
    for (const RecordedCarry& each : loop.exchanges) meet(each.from, each.bytes);
    iterations_.push_back(range.iterations);
    if (range.stop) meet(*range.stop, 1);
    launches(loop.body);
    for (const RecordedCarry& each : loop.carries) meet(each.from, each.bytes);
    iterations_.pop_back();
  }
  void meet(const LaunchOperand& operand, int64_t bytes) {
    if (operand.batch_input < 0) return;
    for (size_t i = 0; i < operand.strides.size(); ++i)
      bytes += std::max<int64_t>(0, iterations_[i] - 1) * operand.strides[i];
    const auto field = static_cast<size_t>(operand.batch_input);
    if (bytes_.size() <= field) bytes_.resize(field + 1, 0);
    bytes_[field] = std::max(bytes_[field], bytes);
  }

  std::vector<int64_t> bytes_;
  std::vector<int64_t> iterations_;
};

}  // namespace

std::vector<int64_t> batch_field_bytes(std::span<const RecordedLaunch> launches) {
  FieldSizes sizes;
  sizes.launches(launches);
  return sizes.take();
}

BatchStaging::BatchStaging(std::shared_ptr<Context> context, std::vector<int64_t> field_bytes)
    : context_(std::move(context)), field_bytes_(std::move(field_bytes)) {
  for (const int64_t bytes : field_bytes_) {
    offsets_.push_back(bytes_);
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (bytes_ == 0) return;
  memory_ = std::make_unique<CardMemory>(context_, bytes_);
  released_ = std::make_unique<Event>(context_);
  for (Slot& slot : slots_) {
    slot.memory = std::make_unique<PinnedMemory>(context_, bytes_);
    slot.copied = std::make_unique<Event>(context_);
  }
}

// Pinned memory is given back when no copy reads it any more.
BatchStaging::~BatchStaging() {
  if (!memory_) return;
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->wait_for_stream.attempt(context_->copies());
}

std::vector<Address> BatchStaging::fields() const {
  std::vector<Address> all;
  for (const int64_t offset : offsets_)
    all.push_back(memory_ ? Address{memory_->get()} + offset : Address{});
  return all;
}

void BatchStaging::bring(std::span<const void* const> host) {
  if (!memory_) return;
  FB_CHECK(host.size() >= field_bytes_.size(), "{} pointers are bound, of {} fields", host.size(),
           field_bytes_.size());
  const Driver& driver = context_->enter();
  Slot& slot = slots_[next_];
  next_ = 1 - next_;
  driver.wait_for_event(slot.copied->get());  // what it held two batches ago has left it
  for (size_t i = 0; i < field_bytes_.size(); ++i)
    if (field_bytes_[i] > 0)
      std::memcpy(slot.memory->get() + offsets_[i], host[i], static_cast<size_t>(field_bytes_[i]));
  driver.wait_in_stream(context_->copies(), released_->get(), 0);
  driver.copy_in(memory_->get(), slot.memory->get(), static_cast<size_t>(bytes_),
                 context_->copies());
  driver.record_event(slot.copied->get(), context_->copies());
  is_brought_ = true;
}

void BatchStaging::wait_in_main() {
  if (!memory_) return;
  FB_CHECK(is_brought_, "a program of {} fields runs, and no batch is bound", field_bytes_.size());
  context_->enter().wait_in_stream(context_->main(), slots_[1 - next_].copied->get(), 0);
}

void BatchStaging::release() {
  if (memory_) context_->enter().record_event(released_->get(), context_->main());
}

}  // namespace fullbore::cuda

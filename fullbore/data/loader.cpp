#include "fullbore/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/start_thread.h"

namespace fullbore {
namespace {

constexpr size_t kAlignment = 64;

struct AlignedDelete {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{kAlignment});
  }
};
using AlignedMemory = std::unique_ptr<std::byte, AlignedDelete>;

AlignedMemory allocate(size_t bytes) {
  return AlignedMemory(
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
}

/// A field may be at its largest in a shape that is not the largest as a whole.
std::vector<size_t> largest_field_bytes(const BatchSource& source) {
  std::vector<size_t> bytes(source.fields().size());
  for (const std::vector<BatchField>& shape : source.shapes())
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = std::max(bytes[i], static_cast<size_t>(shape[i].type.bytes()));
  return bytes;
}

/// Room for one batch.
struct Slot {
  explicit Slot(const std::vector<size_t>& field_bytes) {
    size_t bytes = 0;
    std::vector<size_t> offsets;
    for (const size_t wanted : field_bytes) {
      offsets.push_back(bytes);
      bytes += (wanted + kAlignment - 1) / kAlignment * kAlignment;
    }
    memory = allocate(bytes);
    for (const size_t offset : offsets) {
      buffers.push_back(memory.get() + offset);
      readable.push_back(memory.get() + offset);
    }
  }
  AlignedMemory memory;
  std::vector<void*> buffers;
  std::vector<const void*> readable;
  bool ready = false;
  std::exception_ptr error;  // with `ready`: why there is no batch
};

}  // namespace

/// Position p lives in slot p % slots. The positions from `oldest_` (the batch in use, else the next
/// one) to `oldest_ + slots - 1` may occupy slots; `ticket_` is the first that no worker has taken.
/// Everything but the bytes of a slot that is being filled is guarded by `mutex_`.
class Loader::Ring {
 public:
  Ring(std::shared_ptr<const BatchSource> source, LoaderOptions options)
      : source_(std::move(source)) {
    FB_CHECK(options.workers >= 0 && options.prefetch >= 1, "{} workers, prefetch {}",
             options.workers, options.prefetch);
    const int slots = options.workers == 0 ? 1 : options.prefetch + 1;
    const std::vector<size_t> bytes = largest_field_bytes(*source_);
    for (int i = 0; i < slots; ++i) slots_.emplace_back(bytes);
  }

  // Not in the constructor: the destructor waits for those that were made before one was refused.
  void start(int workers) {
    for (int i = 0; i < workers; ++i)
      workers_.push_back(start_thread("a loader of batches", [this] { work(); }));
  }

  ~Ring() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    may_fill_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  const BatchSource& source() const { return *source_; }
  uint64_t position() const { return position_; }
  double wait_seconds() const { return std::chrono::duration<double>(waited_).count(); }

  std::span<const void* const> next() {
    Slot& slot = slots_[position_ % slots_.size()];
    const Waiting waiting(waited_);
    if (workers_.empty()) {
      source_->fill(position_, slot.buffers);
    } else {
      std::unique_lock lock(mutex_);
      oldest_ = position_;  // the batch handed out before is done with
      may_fill_.notify_one();
      filled_.wait(lock, [&] { return slot.ready; });
      // A slot that failed stays as it is: whoever asks again hears the same.
      if (slot.error) std::rethrow_exception(slot.error);
      slot.ready = false;
    }
    ++position_;
    return slot.readable;
  }

  void seek(uint64_t position) {
    std::unique_lock lock(mutex_);
    seeking_ = true;  // no worker takes another position: what is being filled can be waited for
    filled_.wait(lock, [&] { return filling_ == 0; });
    for (Slot& slot : slots_) {
      slot.ready = false;
      slot.error = nullptr;
    }
    position_ = oldest_ = ticket_ = position;
    seeking_ = false;
    lock.unlock();
    may_fill_.notify_all();
  }

 private:
  /// Adds the time that it exists.
  class Waiting {
   public:
    explicit Waiting(std::chrono::steady_clock::duration& sum) : sum_(sum) {}
    ~Waiting() { sum_ += std::chrono::steady_clock::now() - start_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::chrono::steady_clock::duration& sum_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      may_fill_.wait(lock,
                     [&] { return stopping_ || (!seeking_ && ticket_ - oldest_ < slots_.size()); });
      if (stopping_) return;
      const uint64_t position = ticket_++;
      Slot& slot = slots_[position % slots_.size()];
      ++filling_;
      lock.unlock();
      std::exception_ptr error;
      try {
        source_->fill(position, slot.buffers);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      slot.error = error;
      --filling_;
      slot.ready = true;
      filled_.notify_all();
    }
  }

  const std::shared_ptr<const BatchSource> source_;
  std::vector<Slot> slots_;
  uint64_t position_ = 0;  // of the consumer alone
  std::chrono::steady_clock::duration waited_{};

  std::mutex mutex_;
  std::condition_variable may_fill_;
  std::condition_variable filled_;
  uint64_t oldest_ = 0;
  uint64_t ticket_ = 0;
  int filling_ = 0;
  bool seeking_ = false;
  bool stopping_ = false;
  std::vector<std::thread> workers_;  // last: they use all of the above
};

Loader::Loader(std::shared_ptr<const BatchSource> source, LoaderOptions options)
    : ring_(std::make_unique<Ring>(std::move(source), options)) {
  ring_->start(options.workers);
}

Loader::~Loader() = default;

const BatchSource& Loader::source() const { return ring_->source(); }
std::span<const void* const> Loader::next() { return ring_->next(); }
uint64_t Loader::position() const { return ring_->position(); }
void Loader::seek(uint64_t position) { ring_->seek(position); }
double Loader::wait_seconds() const { return ring_->wait_seconds(); }

}  // namespace fullbore

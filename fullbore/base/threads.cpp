#include "fullbore/base/threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/control_group.h"
#include "fullbore/base/run_delay.h"
#include "fullbore/base/start_thread.h"

namespace fullbore {
namespace {

// Processors of the affinity mask, which is as long as the kernel's.
int affine_processors() {
  for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<size_t>(bits)), [](cpu_set_t* each) { CPU_FREE(each); });
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(bits));
    if (sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
    if (errno != EINVAL) break;  // EINVAL: the kernel's mask is longer
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// Spinning wins when the others arrive within a microsecond or two and harms when cores are shared
// with other processes: a few hundred pauses (some microseconds), then give the core away a few
// times, then sleep in the kernel.
constexpr int kSpins = 2000;
constexpr int kYields = 50;

// Tells the processor that this is a spinning wait.
void pause_processor() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Returns once `word` no longer holds `old`.
void wait_while(const std::atomic<uint32_t>& word, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause_processor();
  }
  for (int i = 0; i < kYields; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    sched_yield();
  }
  while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
}

}  // namespace

void Barrier::wait() {
  if (parties_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
  } else {
    wait_while(phase_, phase);
  }
}

int available_processors(const std::string& root) {
  const int count = std::max(1, affine_processors());
  const double quota = control_group_limits(root).processors;
  return quota < count ? std::max(1, static_cast<int>(std::ceil(quota))) : count;
}

struct ThreadPool::Implementation {
  explicit Implementation(int count) : workers(count), barrier(count) {}

  // Not in the constructor: the destructor waits for those that were made before one was refused.
  void start() {
    threads.reserve(static_cast<size_t>(workers));
    thread_ids.resize(static_cast<size_t>(workers) - 1);
    for (int worker = 1; worker < workers; ++worker)
      threads.push_back(start_thread("a worker of the step", [this, worker] { serve(worker); }));
  }

  ~Implementation() {
    stopping = true;
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  // Life of workers 1..n-1: wait for the next program, run it, say so at the closing barrier.
  void serve(int worker) {
    thread_ids[static_cast<size_t>(worker) - 1] = thread_id();
    uint32_t seen = 0;
    for (;;) {
      wait_while(epoch, seen);
      seen = epoch.load(std::memory_order_acquire);
      if (stopping) return;
      program(context, worker);
      barrier.wait();
    }
  }

  const int workers;
  Barrier barrier;
  std::vector<std::thread> threads;
  std::vector<int> thread_ids;
  void (*program)(void*, int) = nullptr;
  void* context = nullptr;
  bool stopping = false;  // written before, read after a change of epoch

  alignas(64) std::atomic<uint32_t> epoch{0};
};

ThreadPool::ThreadPool(int workers) {
  FB_CHECK(workers >= 1, "{} workers", workers);
  implementation_ = std::make_unique<Implementation>(workers);
  implementation_->start();
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::workers() const { return implementation_->workers; }
std::span<const int> ThreadPool::thread_ids() const { return implementation_->thread_ids; }

void ThreadPool::run(void (*program)(void* context, int worker), void* context) {
  Implementation& pool = *implementation_;
  pool.program = program;
  pool.context = context;
  pool.epoch.fetch_add(1, std::memory_order_release);
  pool.epoch.notify_all();
  program(context, 0);
  pool.barrier.wait();
}

}  // namespace fullbore

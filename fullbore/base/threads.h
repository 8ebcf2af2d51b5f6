#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace fullbore {

/// Number of processors this process may use, at least 1: those of its affinity mask, or fewer where the CPU
/// quota of its control groups, rounded up, is less. `root`: see control_group.h.
int available_processors(const std::string& root = "");

/// Where so many threads meet, again and again: each waits until all have come, spinning for a few
/// microseconds, then yielding, then blocking, so that shared cores are not starved. What was written before
/// is visible after.
class Barrier {
 public:
  explicit Barrier(int parties) : parties_(parties) {}
  void wait();

 private:
  const int parties_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
};

/// A persistent pool of threads that runs one function together, single program, multiple data.
/// Worker 0 is the caller. Between programs the others sleep; inside one they may meet at a Barrier.
class ThreadPool {
 public:
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const;
  /// The kernel's numbers (run_delay.h) of the threads of workers 1 and up, once a program has run.
  std::span<const int> thread_ids() const;
  /// Runs program(context, worker) on every worker and returns when all have. Allocates nothing.
  /// An exception must not leave the program.
  void run(void (*program)(void* context, int worker), void* context);

  /// Convenience for work outside replay: calls body(begin, end) on disjoint ranges of [0, n).
  template <class Body>
  void parallel_for(int64_t n, const Body& body) {
    struct Context {
      const Body& body;
      int64_t n;
      int workers;
    } context{body, n, workers()};
    run(
        [](void* opaque, int worker) {
          const auto& c = *static_cast<Context*>(opaque);
          const int64_t begin = c.n * worker / c.workers;
          const int64_t end = c.n * (worker + 1) / c.workers;
          if (begin < end) c.body(begin, end);
        },
        &context);
  }

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fullbore

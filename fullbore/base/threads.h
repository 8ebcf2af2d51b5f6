#pragma once
#include <cstdint>
#include <memory>

namespace fullbore {

/// Number of processors this process may use: the affinity mask, limited by the cgroup's quota.
int available_processors();

/// A persistent team of threads that runs one function together, single program, multiple data.
/// Worker 0 is the caller. Between programs the others sleep; inside one they meet at barriers that
/// spin for a few microseconds, then yield, then block, so that shared cores are not starved.
class Team {
 public:
  explicit Team(int workers);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int workers() const;
  /// Runs program(context, worker) on every worker and returns when all have. Allocates nothing.
  /// An exception must not leave the program.
  void run(void (*program)(void* context, int worker), void* context);
  /// Inside a program: returns when every worker has arrived. What was written before is visible
  /// after.
  void barrier(int worker);

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

#include "fullbore/device/cpu/peaks/measure_peaks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <new>
#include <utility>
#include <vector>

#include "fullbore/base/tensor_memory.h"
#include "fullbore/device/cpu/peaks/peak_kernels.h"

namespace fullbore::cpu {
namespace {

constexpr double kSecondsPerRound = 0.01;
// A peak has been met when so many rounds in a row, a pause between each, have not beaten it: what other processes
// do changes meanwhile. On a machine that never rests, the last round is the last.
constexpr int kRoundsWithoutRise = 8;
constexpr int kMostRounds = 60;
constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 2'000'000};
constexpr double kRise = 1.002;  ///< less is noise of the clock

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// How one run of the pool went.
struct Timing {
  double seconds = 0;  ///< by the clock on the wall, from first start to last end
  std::vector<double> processor_seconds;  ///< of each worker
};

/// Runs work(worker) on every worker at once.
template <class Work>
Timing time_pool(ThreadPool& pool, const Work& work) {
  struct Context {
    const Work& work;
    Timing timing;
  } context{work, {0, std::vector<double>(static_cast<size_t>(pool.workers()))}};
  const double start = now(CLOCK_MONOTONIC);
  pool.run(
      [](void* opaque, int worker) {
        auto& c = *static_cast<Context*>(opaque);
        const double begin = now(CLOCK_THREAD_CPUTIME_ID);
        c.work(worker);
        c.timing.processor_seconds[static_cast<size_t>(worker)] =
            now(CLOCK_THREAD_CPUTIME_ID) - begin;
      },
      &context);
  context.timing.seconds = now(CLOCK_MONOTONIC) - start;
  return context.timing;
}

/// The largest of what `round()` measures, over as many rounds as it takes until it rises no more.
template <class Round>
double highest(const Round& round) {
  double best = 0;
  int without_rise = 0;
  for (int i = 0; i < kMostRounds && without_rise < kRoundsWithoutRise; ++i) {
    if (i > 0) nanosleep(&kPause, nullptr);
    const double measured = round();
    without_rise = measured > best * kRise ? 0 : without_rise + 1;
    best = std::max(best, measured);
  }
  return best;
}

/// Flops per second of all workers together. By processor time: what other processes take of a core is no limit of
/// the core. By the clock too, if that is more: processor time is no clock, and a step is measured by one.
double measure_arithmetic(ThreadPool& pool, const PeakKernel& kernel) {
  int64_t iterations = 1000;
  std::atomic<float> sink{0};
  const auto run = [&] {
    return time_pool(pool, [&](int) { sink.store(kernel.run(iterations)); });
  };
  // Longer and longer until one run dwarfs the cost of reading the clock.
  while (run().processor_seconds[0] < kSecondsPerRound) iterations *= 2;
  return highest([&] {
    const Timing timing = run();
    const double flops = kernel.flops_per_iteration * static_cast<double>(iterations);
    double rate = 0;
    for (const double seconds : timing.processor_seconds) rate += flops / seconds;
    return std::max(rate, flops * pool.workers() / timing.seconds);
  });
}

constexpr int64_t kArrayUnit = 4096;  ///< keeps the arrays of the triad aligned

struct Bandwidth {
  double bytes_per_second = 0;
  bool busy = false;   ///< other processes took a good part of the time of every round
  bool small = false;  ///< there was no memory for arrays larger than the caches
};

/// The triad. By the clock: memory is shared, and one worker alone would see more than its part.
Bandwidth measure_bandwidth(ThreadPool& pool, const PeakMemory& memory, std::span<char> lent) {
  // Twice the last cache per array, for it may belong to many more processors than ours; within
  // bounds, for a small machine must not be filled.
  const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  const int64_t wanted = std::clamp<int64_t>(2 * cache, 32 << 20, 96 << 20);
  const auto lent_bytes = static_cast<int64_t>(lent.size());
  const bool is_lent = lent_bytes >= std::min(memory.bytes, 3 * wanted);
  const int64_t most_bytes = is_lent ? lent_bytes : memory.bytes;
  const int64_t bytes =
      std::clamp<int64_t>(most_bytes / 3, 1 << 20, wanted) / kArrayUnit * kArrayUnit;
  const auto elements = static_cast<size_t>(bytes) / sizeof(double);
  TensorMemory own;
  if (lent_bytes < 3 * bytes) {
    own = allocate_tensor_memory(3 * bytes);
    if (!own) throw std::bad_alloc();
  }
  // Numbers, whatever lies in what was lent: some are slower than others.
  auto* const a = reinterpret_cast<double*>(own ? own.get() : lent.data());
  double* const b = a + elements;
  double* const c = b + elements;
  pool.parallel_for(static_cast<int64_t>(elements), [&](int64_t begin, int64_t end) {
    std::fill(a + begin, a + end, 0.0);
    std::fill(b + begin, b + end, 1.0);
    std::fill(c + begin, c + end, 2.0);
  });
  const auto workers = static_cast<size_t>(pool.workers());
  const auto run = [&] {
    return time_pool(pool, [&](int worker) {
      const size_t begin = elements * static_cast<size_t>(worker) / workers;
      const size_t end = elements * static_cast<size_t>(worker + 1) / workers;
      for (size_t i = begin; i < end; ++i) a[i] = b[i] + 3.0 * c[i];
    });
  };
  Timing best;
  const double rate = highest([&] {
    Timing timing = run();
    const double seconds = timing.seconds;
    if (best.seconds == 0 || seconds < best.seconds) best = std::move(timing);
    return 3.0 * static_cast<double>(bytes) / seconds;
  });
  const double longest =
      *std::max_element(best.processor_seconds.begin(), best.processor_seconds.end());
  return {rate, longest < 0.8 * best.seconds, most_bytes / 3 < wanted};
}

}  // namespace

MeasuredPeaks measure_peaks(ThreadPool& pool, const PeakMemory& memory, std::span<char> lent) {
  const PeakKernel fp32 = fp32_peak_kernel();
  const PeakKernel bf16 = bf16_peak_kernel();
  MeasuredPeaks measured;
  measured.fp32_method = fp32.name;
  measured.bf16_method = bf16.name;
  measured.native_bf16 = bf16.run != nullptr;
  measured.peaks.fp32_flops = measure_arithmetic(pool, fp32);
  measured.peaks.bf16_flops =
      measured.native_bf16 ? measure_arithmetic(pool, bf16) : measured.peaks.fp32_flops;
  const Bandwidth bandwidth = measure_bandwidth(pool, memory, lent);
  measured.peaks.bytes_per_second = bandwidth.bytes_per_second;
  measured.busy = bandwidth.busy;
  measured.in_caches = bandwidth.small;
  return measured;
}

}  // namespace fullbore::cpu

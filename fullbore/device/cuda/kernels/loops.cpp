// Loops whose counts depend on data, within a CUDA graph: an iteration is the body of a conditional node. What decides about
// iterations, and what has to be done around them, is done by these. All parameters have 64 bits.
#include "fullbore/device/cuda/kernels/gpu.h"

// Of the driver: it is linked when the code is loaded.
extern "C" __attribute__((device)) void cudaGraphSetConditional(unsigned long condition,
                                                                unsigned value);

namespace {

// As executor/conditional_loops.cpp has it.
struct LoopState {
  long most;      // iterations without a stop flag
  long executed;  // since the loop began
  long stopped;   // by its flag: 1
  long total;     // iterations of the run, however often the loop began
};

FB_DEVICE bool is_aligned(const void* pointer) {
  return reinterpret_cast<unsigned long>(pointer) % sizeof(Vector4) == 0;
}
FB_DEVICE long first_thread() { return static_cast<long>(block_x()) * threads() + thread(); }
FB_DEVICE long all_threads() { return static_cast<long>(blocks_x()) * threads(); }

// to, from [count]; swaps: each gets the other's, and then, if copies, `to` what `from` has.
template <class T>
FB_DEVICE void settle(T* from, T* to, long count, bool swaps, bool copies) {
  for (long i = first_thread(); i < count; i += all_threads()) {
    const T a = swaps ? to[i] : from[i], b = swaps ? from[i] : to[i];
    if (swaps) from[i] = a;
    to[i] = copies ? a : b;
  }
}

// Bytes [begin, end) of rows.
FB_DEVICE void clear(unsigned char* rows, long begin, long end) {
  unsigned char* const first = rows + begin;
  const long bytes = end - begin;
  if (is_aligned(first) && bytes % static_cast<long>(sizeof(Vector4)) == 0) {
    Vector4* const vectors = reinterpret_cast<Vector4*>(first);
    for (long i = first_thread(); i < bytes / static_cast<long>(sizeof(Vector4));
         i += all_threads())
      vectors[i] = Vector4{0, 0, 0, 0};
  } else {
    for (long i = first_thread(); i < bytes; i += all_threads()) first[i] = 0;
  }
}

}  // namespace

// One thread. `count` or null: no more iterations than that, of `iterations`.
FB_KERNEL void begin_loop(LoopState* state, const long* count, long iterations) {
  state->most = count == nullptr ? iterations : least(most(*count, 0L), iterations);
  state->executed = 0;
  state->stopped = 0;
}

// One thread. The condition: are there iterations to be made whose index is `first` or more? Of a loop that goes backwards the
// same, for its indices begin below the count.
FB_KERNEL void decide_iteration(const LoopState* state, long first, unsigned long condition) {
  const bool goes_on = state->stopped == 0 && first < state->most;
  cudaGraphSetConditional(condition, goes_on ? 1 : 0);
}

// One thread, behind an iteration. `stop` or null: a bool.
FB_KERNEL void end_iteration(LoopState* state, const unsigned char* stop) {
  state->executed += 1;
  if (stop != nullptr && *stop != 0) state->stopped = 1;
}

// from, to [bytes], which change places with each iteration. Behind a loop: if their number is odd, the bytes of `from`
// become those of `to`. `crosses`: the iterations of a loop that goes backwards find both where they would be if there were
// `iterations` of them; if one more or less would be right, they are swapped before and behind the loop.
FB_KERNEL void settle_exchange(const LoopState* state, unsigned char* from, unsigned char* to,
                               long bytes, long iterations, long crosses) {
  const bool swaps = crosses != 0 && (iterations - state->most) % 2 != 0;
  const bool copies = state->executed % 2 != 0;
  if (!swaps && !copies) return;
  constexpr long kVector = sizeof(Vector4);
  if (is_aligned(from) && is_aligned(to) && bytes % kVector == 0)
    settle(reinterpret_cast<Vector4*>(from), reinterpret_cast<Vector4*>(to), bytes / kVector, swaps,
           copies);
  else
    settle(from, to, bytes, swaps, copies);
}

// rows [iterations, row_bytes]: zeros where no iteration was made (device/recording.h, rows_not_made).
FB_KERNEL void clear_rows(const LoopState* state, unsigned char* rows, long row_bytes,
                          long iterations, long reverse) {
  const long most = state->most, executed = state->executed;
  const long begin = reverse != 0 ? most - executed : 0, end = reverse != 0 ? most : executed;
  clear(rows, 0, begin * row_bytes);
  clear(rows, end * row_bytes, iterations * row_bytes);
}

// One thread. `executed` or null: gets how many iterations were made.
FB_KERNEL void finish_loop(LoopState* state, long* executed) {
  state->total += state->executed;
  if (executed != nullptr) *executed = state->executed;
}

// The states of a linear recurrence at the borders of its chunks, and in reverse their cotangents
// (fullbore/ops/recurrence_states.cpp), in f32 arithmetic for f32, bf16 and f16. A block has 32 keys and 32 values of a
// head's state in registers, and goes through all tokens.
#include "fullbore/device/cuda/kernels/recurrence_operands.h"

namespace {

constexpr int kTile = 32;
constexpr int kThreads = 128;
constexpr int kStage = 32;                           // tokens that lie in shared memory at a time
constexpr int kKeys = 4, kValues = 2;                // of a thread
constexpr int kBrought = kStage * kTile / kThreads;  // elements of a stage that a thread brings
constexpr int kRows = kThreads / kTile;              // tokens of a stage that are brought at a time

/// Tokens in the order in which they are met, from position 0 on.
struct alignas(16) Stage {
  float k[kStage][kTile], v[kStage][kTile], decay[kStage][kTile];
  unsigned resets;
};
template <class T>
struct Brought {
  T k[kBrought], v[kBrought];
  unsigned g[kBrought];
  bool reset;
};

template <class T>
struct Walk {
  const RecurrenceProblem& p;
  HeadRows<T> k, v;
  Decays<T> decays;
  Resets resets;
  int key0, value0;

  FB_DEVICE int token(int position) const {
    return p.reverse != 0 ? p.tokens - 1 - position : position;
  }

  /// Reads a stage. In reverse an inclusive state decays behind what it takes: then so does what it takes.
  FB_DEVICE void bring(Brought<T>& to, int position0) const {
    const int column = thread() % kTile;
    const int key = key0 + column;
#pragma unroll
    for (int i = 0; i < kBrought; ++i) {
      const int position = position0 + i * kRows + thread() / kTile;
      to.k[i] = to.v[i] = {};
      to.g[i] = 0;
      if (position >= p.tokens) continue;
      const int t = token(position);
      to.k[i] = k.at(t, key);
      to.v[i] = v.at(t, value0 + column);
      to.g[i] = decays.bits(t, key);
    }
    const int position = position0 + thread();
    to.reset = thread() < kStage && position < p.tokens && resets.at(position);
  }
  FB_DEVICE void put(Stage& to, const Brought<T>& from) const {
    const bool decays_after = p.reverse != 0 && p.inclusive != 0;
#pragma unroll
    for (int i = 0; i < kBrought; ++i) {
      const int row = i * kRows + thread() / kTile, column = thread() % kTile;
      const float k_here = load(from.k[i]), decay = decays.number(from.g[i]);
      to.k[row][column] = decays_after ? k_here * decay : k_here;
      to.v[row][column] = load(from.v[i]);
      to.decay[row][column] = decay;
    }
    const unsigned resets_here = ballot(from.reset);
    if (thread() == 0) to.resets = resets_here;
  }
};

/// A thread's keys and values of the state.
struct State {
  float s[kKeys][kValues];

  FB_DEVICE void forget() {
#pragma unroll
    for (auto& row : s)
#pragma unroll
      for (float& x : row) x = 0;
  }
  FB_DEVICE void take(const Stage& stage, int at, int key, int value) {
    const Float4 k = *reinterpret_cast<const Float4*>(&stage.k[at][key]);
    const Float4 decay = *reinterpret_cast<const Float4*>(&stage.decay[at][key]);
    const Float2 v = *reinterpret_cast<const Float2*>(&stage.v[at][value]);
#pragma unroll
    for (int i = 0; i < kKeys; ++i)
#pragma unroll
      for (int j = 0; j < kValues; ++j) s[i][j] = s[i][j] * decay[i] + k[i] * v[j];
  }
};

template <class T>
FB_DEVICE void make_states(const T* k, const T* v, const void* g, const void* initial,
                           const unsigned char* resets, float* states, float* last,
                           const RecurrenceProblem& p) {
  FB_SHARED static Stage stages[2];
  const int key_tiles = (p.keys + kTile - 1) / kTile, value_tiles = (p.values + kTile - 1) / kTile;
  const int tile = block_x() % (key_tiles * value_tiles);
  const OneHead one(p, block_x() / (key_tiles * value_tiles));
  const int key0 = tile / value_tiles * kTile, value0 = tile % value_tiles * kTile;
  const Walk<T> walk{p,
                     one.keys(k, p),
                     one.values(v, p),
                     Decays<T>(g, p, one),
                     Resets(resets, p, one, 0, p.tokens, p.reverse != 0),
                     key0,
                     value0};
  const int key = thread() % (kTile / kKeys) * kKeys, value = thread() / (kTile / kKeys) * kValues;
  const long first = one.keys_of_chunk(p, 0) * p.values,
             chunk_elements = static_cast<long>(p.batch) * p.heads * p.keys * p.values;
  const Either<T> from{initial, p.wide_states};

  State state;
  const auto for_each = [&](const auto& visit) FB_INLINED {
#pragma unroll
    for (int i = 0; i < kKeys; ++i)
#pragma unroll
      for (int j = 0; j < kValues; ++j)
        if (key0 + key + i < p.keys && value0 + value + j < p.values)
          visit(state.s[i][j],
                first + static_cast<long>(key0 + key + i) * p.values + value0 + value + j);
  };
  state.forget();
  for_each([&](float& x, long at) FB_INLINED { x = from.at(at); });

  // Tokens until the state is that of a border, and the chunk there.
  int until_border = 0, chunk = p.reverse != 0 ? p.chunks - 1 : 0;
  const int direction = p.reverse != 0 ? -1 : 1;
  const int of_last_chunk = p.tokens - (p.chunks - 1) * p.chunk;
  // A stage is brought while the one before it is met.
  for (int position = -kStage, side = 1; position < p.tokens; position += kStage, side ^= 1) {
    const Stage& stage = stages[side];
    const bool is_more = position + kStage < p.tokens;
    Brought<T> next;
    if (is_more) walk.bring(next, position + kStage);
    const int count = position < 0 ? 0 : least(kStage, p.tokens - position);
    for (int at = 0; at < count;) {
      const bool is_reset = (stage.resets >> at & 1U) != 0;
      if (is_reset && p.reverse != 0) state.forget();
      if (until_border == 0) {
        for_each([&](float& x, long place)
                     FB_INLINED { states[chunk * chunk_elements + place] = x; });
        until_border = chunk == p.chunks - 1 ? of_last_chunk : p.chunk;
        chunk += direction;
      }
      if (is_reset && p.reverse == 0) state.forget();
      const int end = least(at + until_border, end_of_segment(stage.resets, at, count));
      until_border -= end - at;
#pragma unroll 4
      for (; at < end; ++at) state.take(stage, at, key, value);
    }
    if (is_more) walk.put(stages[side ^ 1], next);
    barrier();
  }
  if (p.reverse != 0 && walk.resets.at(p.tokens)) state.forget();
  for_each([&](float& x, long at) FB_INLINED { last[at] = x; });
}

}  // namespace

#define FB_STATES(T, SUFFIX)                                                                   \
  FB_KERNEL void recurrence_states_##SUFFIX(                                                   \
      const T* k, const T* v, const void* g, const void* initial, const unsigned char* resets, \
      float* states, float* last, RecurrenceProblem problem) {                                 \
    make_states<T>(k, v, g, initial, resets, states, last, problem);                           \
  }
FB_STATES(float, f32)
FB_STATES(Bf16, bf16)
FB_STATES(F16, f16)

#pragma once
// Parts of the walk over a chunk's tokens that recurrence_walks.cpp makes: tokens in shared memory, and a thread's part of
// the matrix M that goes from token to token.
#include "fullbore/device/cuda/kernels/recurrence_operands.h"

constexpr int kStage = 16;  // tokens that lie in shared memory at a time
constexpr int kSlice = 8;   // rows of a thread

template <int kExtent>
struct StateTile {
  static constexpr int kLanes = kExtent / kSlice;  // that share columns
  static constexpr int kColumns = kExtent == 32 ? 2 : 4;
  static constexpr int kThreads = kExtent / kColumns * kLanes;
  static constexpr int kRows = kThreads / kExtent;  // tokens of a stage that are brought at a time
  static constexpr int kBrought = kStage / kRows;   // elements of a stage that a thread brings
  static constexpr int kOfToken =
      kThreads / kStage;  // threads that make a token's factor of the bonus
};

/// Kinds of recurrences: M takes a token before it is read or not, each key has its decay or all have one.
enum class Kind { kExclusive, kInclusive, kInclusiveOneDecay };
constexpr bool has_bonus(Kind kind) { return kind == Kind::kExclusive; }
constexpr bool is_by_key(Kind kind) { return kind != Kind::kInclusiveOneDecay; }

/// Tokens in the order in which they are met.
template <int kExtent, Kind kKind>
struct alignas(16) Stage {
  float reader[kStage][kExtent], left[kStage][kExtent], right[kStage][kExtent];
  float decay[kStage][is_by_key(kKind) ? kExtent : 1];
  float own[kStage];  ///< reader_t diag(u) left_t
  unsigned resets;
};
template <class T, int kExtent>
struct Brought {
  static constexpr int kCount = StateTile<kExtent>::kBrought;
  T reader[kCount], left[kCount], right[kCount];
  unsigned g[kCount];
  bool reset;
};

template <class T>
struct RecurrenceWalk {
  HeadRows<T> reader, left, right;
  Decays<T> decays;
  Resets resets;
  int token0, tokens;  ///< of the chunk
  bool in_reverse;

  FB_DEVICE int token(int position) const {
    return token0 + (in_reverse ? tokens - 1 - position : position);
  }

  /// Reads a stage for a tile of M.
  template <int kExtent, Kind kKind, bool kKeysAreRows>
  FB_DEVICE void bring(Brought<T, kExtent>& to, int position0, int row0, int column0) const {
    using Of = StateTile<kExtent>;
    const bool decays_late = in_reverse && kKind != Kind::kExclusive;
    const int across = thread() % kExtent;
#pragma unroll
    for (int i = 0; i < Of::kBrought; ++i) {
      const int position = position0 + i * Of::kRows + thread() / kExtent;
      to.reader[i] = to.left[i] = to.right[i] = {};
      to.g[i] = 0;
      if (position >= tokens) continue;
      const int t = token(position);
      to.reader[i] = reader.at(t, row0 + across);
      to.left[i] = left.at(t, row0 + across);
      to.right[i] = right.at(t, column0 + across);
      if (is_by_key(kKind) && !(decays_late && position == 0))
        to.g[i] = decays.bits(decays_late ? t + 1 : t, (kKeysAreRows ? row0 : column0) + across);
    }
    const int position = position0 + thread();
    const bool is_met = thread() < kStage && position < tokens;
    if (!is_by_key(kKind) && is_met && !(decays_late && position == 0))
      to.g[0] = decays.bits(token(position) + (decays_late ? 1 : 0), 0);
    to.reset = is_met && resets.at(position);
  }
  template <int kExtent, Kind kKind>
  FB_DEVICE void put(Stage<kExtent, kKind>& to, const Brought<T, kExtent>& from) const {
    using Of = StateTile<kExtent>;
#pragma unroll
    for (int i = 0; i < Of::kBrought; ++i) {
      const int row = i * Of::kRows + thread() / kExtent, across = thread() % kExtent;
      to.reader[row][across] = load(from.reader[i]);
      to.left[row][across] = load(from.left[i]);
      to.right[row][across] = load(from.right[i]);
      if constexpr (is_by_key(kKind)) to.decay[row][across] = decays.number(from.g[i]);
    }
    if (!is_by_key(kKind) && thread() < kStage) to.decay[thread()][0] = decays.number(from.g[0]);
    const unsigned resets_here = ballot(from.reset);
    if (thread() == 0) to.resets = resets_here;
  }
};

template <int kCount>
FB_DEVICE void read_columns(float (&to)[kCount], const float* from) {
  if constexpr (kCount == 2) {
    const Float2 two = *reinterpret_cast<const Float2*>(from);
    to[0] = two[0];
    to[1] = two[1];
  } else {
    const Float4 four = *reinterpret_cast<const Float4*>(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = four[i];
  }
}

/// A thread's part of a tile of M.
template <int kExtent>
struct Part {
  using Of = StateTile<kExtent>;
  float m[kSlice][Of::kColumns];

  FB_DEVICE static int lane() { return thread() % Of::kLanes; }
  FB_DEVICE static int row(int i) { return i / 4 * 4 * Of::kLanes + lane() * 4 + i % 4; }
  FB_DEVICE static int column() { return thread() / Of::kLanes * Of::kColumns; }

  FB_DEVICE void forget() {
#pragma unroll
    for (auto& row : m)
#pragma unroll
      for (float& x : row) x = 0;
  }

  /// The thread's rows of a token.
  FB_DEVICE static void read_rows(float (&to)[kSlice], const float* from) {
#pragma unroll
    for (int i = 0; i < kSlice; i += 4) {
      const Float4 four = *reinterpret_cast<const Float4*>(&from[row(i)]);
#pragma unroll
      for (int j = 0; j < 4; ++j) to[i + j] = four[j];
    }
  }

  /// Decays of the thread's rows or, if keys are columns, of its columns.
  template <bool kKeysAreRows, Kind kKind>
  FB_DEVICE void take(const Stage<kExtent, kKind>& stage, int at, const float (&left)[kSlice],
                      const float (&right)[Of::kColumns]) {
    float of_row[kSlice], of_column[Of::kColumns];
    if constexpr (!is_by_key(kKind)) {
      of_row[0] = stage.decay[at][0];
    } else if constexpr (kKeysAreRows) {
      read_rows(of_row, stage.decay[at]);
    } else {
      read_columns(of_column, &stage.decay[at][column()]);
    }
#pragma unroll
    for (int i = 0; i < kSlice; ++i)
#pragma unroll
      for (int j = 0; j < Of::kColumns; ++j) {
        const float decay = !is_by_key(kKind) ? of_row[0] : kKeysAreRows ? of_row[i] : of_column[j];
        m[i][j] = m[i][j] * decay + left[i] * right[j];
      }
  }

  /// sums = the thread's rows of M, times the reader's.
  FB_DEVICE void multiply(float (&sums)[Of::kColumns], const float (&reader)[kSlice]) const {
#pragma unroll
    for (int j = 0; j < Of::kColumns; ++j) {
      float even = 0, odd = 0;  // half the wait for one another
#pragma unroll
      for (int i = 0; i < kSlice; i += 2) {
        even += reader[i] * m[i][j];
        odd += reader[i + 1] * m[i + 1][j];
      }
      sums[j] = even + odd;
    }
  }
};

/// Of each column, which of the first lanes have one each, the sum over the lanes that share it.
template <int kExtent>
FB_DEVICE float sum_of_lanes(float (&sums)[StateTile<kExtent>::kColumns]) {
  int mask = 1;
#pragma unroll
  for (int half = StateTile<kExtent>::kColumns / 2; half > 0; half /= 2) {
    const bool upper = (thread() & mask) != 0;
#pragma unroll
    for (int j = 0; j < half; ++j) {
      const float kept = upper ? sums[j + half] : sums[j], given = upper ? sums[j] : sums[j + half];
      sums[j] = kept + from_lane_xor(given, mask);
    }
    mask *= 2;
  }
#pragma unroll
  for (; mask < StateTile<kExtent>::kLanes; mask *= 2) sums[0] += from_lane_xor(sums[0], mask);
  return sums[0];
}
/// Within the tile; -1: none.
template <int kExtent>
FB_DEVICE int owned_column() {
  using Of = StateTile<kExtent>;
  const int lane = Part<kExtent>::lane();
  if (lane >= Of::kColumns) return -1;
  return Part<kExtent>::column() + (Of::kColumns == 2 ? lane : (lane & 1) * 2 + lane / 2);
}

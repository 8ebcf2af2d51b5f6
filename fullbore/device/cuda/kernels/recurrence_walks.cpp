// What tokens of a linear recurrence read, and its gradient within chunks (fullbore/ops/recurrence_outputs.cpp,
// recurrence_gradient.cpp), in f32 arithmetic for f32, bf16 and f16. All four are one walk over a chunk's tokens with a
// matrix M [depth, columns], which begins as a state or its cotangent, and of which rows are summed at each token:
//   result_t = reader_t M,  M = decay_t M + left_t^T right_t
//             M                  depth   columns  reader  left  right
//   y         state              keys    values   r       k     v
//   dr        state              values  keys     dy      v     k
//   dk        its cotangent      values  keys     v       dy    r
//   dv        its cotangent      keys    values   k       r     dy
// Cotangents go from the last token to the first. If the recurrence is inclusive, M takes a token before it is read: in
// reverse what decays then is what the token behind left. If it is not, y and dv have a bonus, (reader_t diag(u) left_t)
// right_t.
//
// A block has a square tile of M in registers, and goes over the depth in tiles. Of a tile a thread has kSlice rows of
// some columns; neighbouring lanes have the others, and add up.
#include "fullbore/device/cuda/kernels/recurrence_walk.h"

namespace {

/// Where sums over a tile of the depth go: the last tile's, with those before it, to `rounded` if there is such.
template <class T>
struct Results {
  float* sums;
  T* rounded;
  long first, stride;  ///< of token 0, and from one to the next
  int width;

  FB_DEVICE void put(int token, int column, float sum, bool is_first, bool is_last) const {
    const long at = first + token * stride + column;
    if (!is_first) sum += sums[at];
    if (is_last && rounded != nullptr)
      store(&rounded[at], sum);
    else
      sums[at] = sum;
  }
};

/// The elements of a state [K,V], or of its cotangent.
template <class T>
struct StateOf {
  Either<T> all;
  long first;
  int keys, values;
  FB_DEVICE float at(int key, int value) const {
    if (key >= keys || value >= values) return 0;
    return all.at(first + static_cast<long>(key) * values + value);
  }
};

/// What the walk for dr makes beside it: v_t dy_t for the bonus, and of the state behind the chunk the products with its
/// cotangent, summed over values.
template <class T>
struct Beside {
  bool is_made;
  float* slopes;  ///< of token 0, of [B,T,H]
  float* ends;    ///< of key 0, of [chunks,B,H,K]
  int heads;
  StateOf<T> behind;
};

/// A token's factor of the bonus, of the rows of this tile.
template <int kExtent>
struct OwnFactor {
  using Of = StateTile<kExtent>;
  static constexpr int kTerms = kExtent / Of::kOfToken;
  float u[kTerms];

  /// u: of row 0, or 1 if null.
  template <class T>
  FB_DEVICE OwnFactor(const Either<T>& of, long first, int row0, int depth) {
#pragma unroll
    for (int i = 0; i < kTerms; ++i) {
      const int row = row0 + i * Of::kOfToken + thread() % Of::kOfToken;
      u[i] = of.first == nullptr ? 1 : row < depth ? of.at(first + row) : 0;
    }
  }
  /// Of token thread() / kOfToken of the stage; its threads all have it.
  template <Kind kKind>
  FB_DEVICE float of(const Stage<kExtent, kKind>& stage) const {
    const int at = thread() / Of::kOfToken;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kTerms; ++i) {
      const int row = i * Of::kOfToken + thread() % Of::kOfToken;
      sum += stage.reader[at][row] * stage.left[at][row] * u[i];
    }
#pragma unroll
    for (int mask = 1; mask < Of::kOfToken; mask *= 2) sum += from_lane_xor(sum, mask);
    return sum;
  }
};

template <class T, int kExtent, Kind kKind, bool kKeysAreRows>
FB_DEVICE void go(Stage<kExtent, kKind>* stages, const RecurrenceWalk<T>& walk,
                  const StateOf<T>& from, const Either<T>& u, long first_of_u,
                  const Results<T>& results, int column0, const Beside<T>& beside) {
  using Of = StateTile<kExtent>;
  using MyPart = Part<kExtent>;
  const int depth = walk.left.width;
  const int owned = owned_column<kExtent>();
  const bool puts = owned >= 0 && column0 + owned < results.width;
#pragma unroll 1
  for (int row0 = 0; row0 < depth; row0 += kExtent) {
    const bool is_first = row0 == 0, is_last = row0 + kExtent >= depth;
    MyPart part;
#pragma unroll
    for (int i = 0; i < kSlice; ++i)
#pragma unroll
      for (int j = 0; j < Of::kColumns; ++j) {
        const int row = row0 + MyPart::row(i), column = column0 + MyPart::column() + j;
        part.m[i][j] = kKeysAreRows ? from.at(row, column) : from.at(column, row);
      }
    const OwnFactor<kExtent> own_factor(kKeysAreRows ? u : Either<T>{nullptr, 0}, first_of_u, row0,
                                        depth);
    // The sums of a token are added up while the next one is met.
    float sums[Of::kColumns] = {};
    int summed = -1;
    const auto put_sums = [&]() FB_INLINED {
      const float sum = sum_of_lanes<kExtent>(sums);
      if (puts && summed >= 0) results.put(summed, column0 + owned, sum, is_first, is_last);
    };
    // A stage is brought while the one before it is met.
#pragma unroll 1
    for (int position = -kStage, side = 1; position < walk.tokens; position += kStage, side ^= 1) {
      Stage<kExtent, kKind>& stage = stages[side];
      const bool is_more = position + kStage < walk.tokens;
      Brought<T, kExtent> next;
      if (is_more)
        walk.template bring<kExtent, kKind, kKeysAreRows>(next, position + kStage, row0, column0);
      const int count = position < 0 ? 0 : least(kStage, walk.tokens - position);
      if (has_bonus(kKind) && count > 0) {
        const int at = thread() / Of::kOfToken;
        const float own = own_factor.of(stage);
        if (thread() % Of::kOfToken == 0) {
          if (kKeysAreRows) {
            stage.own[at] = own;
          } else if (beside.is_made && column0 == 0 && at < count) {
            float* const slope =
                &beside.slopes[static_cast<long>(walk.token(position + at)) * beside.heads];
            *slope = is_first ? own : *slope + own;
          }
        }
        if (kKeysAreRows) barrier();
      }
#pragma unroll 1
      for (int at = 0; at < count;) {
        if ((stage.resets >> at & 1U) != 0) part.forget();
        const int end = end_of_segment(stage.resets, at, count);
#pragma unroll 1
        for (; at < end; ++at) {
          float reader[kSlice], left[kSlice], right[Of::kColumns];
          MyPart::read_rows(reader, stage.reader[at]);
          MyPart::read_rows(left, stage.left[at]);
          read_columns(right, &stage.right[at][MyPart::column()]);
          put_sums();
          summed = walk.token(position + at);
          if (kKind == Kind::kExclusive) part.multiply(sums, reader);
          part.template take<kKeysAreRows>(stage, at, left, right);
          if (kKind != Kind::kExclusive) part.multiply(sums, reader);
          if (has_bonus(kKind) && kKeysAreRows) {
            const float own = MyPart::lane() == 0 ? stage.own[at] : 0;
#pragma unroll
            for (int j = 0; j < Of::kColumns; ++j) sums[j] += own * right[j];
          }
        }
      }
      if (is_more) walk.put(stages[side ^ 1], next);
      barrier();
    }
    put_sums();
    if (beside.is_made) {
#pragma unroll
      for (int j = 0; j < Of::kColumns; ++j) {
        sums[j] = 0;
#pragma unroll
        for (int i = 0; i < kSlice; ++i)
          sums[j] += part.m[i][j] *
                     beside.behind.at(column0 + MyPart::column() + j, row0 + MyPart::row(i));
      }
      const float sum = sum_of_lanes<kExtent>(sums);
      float* const end = &beside.ends[column0 + owned];
      if (puts) *end = is_first ? sum : *end + sum;
    }
  }
}

/// A block's chunk, head, and tile of results among `tiles`.
struct Block {
  int tile, chunk;
  OneHead one;
  int token0, tokens;
  FB_DEVICE Block(const RecurrenceProblem& p, int tiles)
      : tile(block_x() % tiles),
        chunk(block_x() / tiles / (p.batch * p.heads)),
        one(p, block_x() / tiles % (p.batch * p.heads)),
        token0(chunk * p.chunk),
        tokens(least(p.chunk, p.tokens - token0)) {}

  template <class T>
  FB_DEVICE RecurrenceWalk<T> walk(const RecurrenceProblem& p, const HeadRows<T>& reader,
                                   const HeadRows<T>& left, const HeadRows<T>& right, const void* g,
                                   const unsigned char* resets, bool in_reverse) const {
    return {reader,
            left,
            right,
            Decays<T>(g, p, one),
            Resets(resets, p, one, token0, tokens, in_reverse),
            token0,
            tokens,
            in_reverse};
  }
  template <class T>
  FB_DEVICE StateOf<T> state(const RecurrenceProblem& p, const void* of, int wide) const {
    return {{of, wide}, one.keys_of_chunk(p, chunk) * p.values, p.keys, p.values};
  }
  template <class T>
  FB_DEVICE Results<T> results(const RecurrenceProblem& p, float* sums, T* rounded,
                               int width) const {
    return {sums, rounded, one.row(p, 0) * width, static_cast<long>(p.heads) * width, width};
  }
};

FB_DEVICE int tiles_of(int width, int extent) { return (width + extent - 1) / extent; }

template <class T, int kExtent, Kind kKind>
FB_DEVICE void make_outputs(const T* r, const T* k, const T* v, const void* g, const void* u,
                            const void* states, const unsigned char* resets, T* y, float* sums,
                            const RecurrenceProblem& p) {
  FB_SHARED static Stage<kExtent, kKind> stages[2];
  const Block block(p, tiles_of(p.values, kExtent));
  const OneHead& one = block.one;
  go<T, kExtent, kKind, true>(
      stages, block.walk(p, one.keys(r, p), one.keys(k, p), one.values(v, p), g, resets, false),
      block.state<T>(p, states, p.wide_states), {u, p.wide_u}, static_cast<long>(one.head) * p.keys,
      block.results(p, sums, y, p.values), block.tile * kExtent, {});
}

// Blocks of one chunk and head: tiles of dr, those of dk, those of dv. Of dr and dk the sums are those of a head, and
// without the bonus.
template <class T, int kExtent, Kind kKind>
FB_DEVICE void make_gradient(const T* r, const T* k, const T* v, const T* dy, const void* g,
                             const void* u, const void* states, const void* cotangents,
                             const unsigned char* resets, float* dr, float* dk, T* dv, float* sums,
                             float* slopes, float* ends, const RecurrenceProblem& p) {
  FB_SHARED static Stage<kExtent, kKind> stages[2];
  const int key_tiles = tiles_of(p.keys, kExtent), value_tiles = tiles_of(p.values, kExtent);
  const Block block(p, 2 * key_tiles + value_tiles);
  const OneHead& one = block.one;
  if (block.tile >= 2 * key_tiles) {
    go<T, kExtent, kKind, true>(
        stages, block.walk(p, one.keys(k, p), one.keys(r, p), one.values(dy, p), g, resets, true),
        block.state<T>(p, cotangents, p.wide_cotangents), {u, p.wide_u},
        static_cast<long>(one.head) * p.keys, block.results(p, sums, dv, p.values),
        (block.tile - 2 * key_tiles) * kExtent, {});
    return;
  }
  const bool of_dk = block.tile >= key_tiles;
  go<T, kExtent, kKind, false>(
      stages,
      block.walk(p, one.values(of_dk ? v : dy, p), one.values(of_dk ? dy : v, p),
                 one.keys(of_dk ? r : k, p), g, resets, of_dk),
      block.state<T>(p, of_dk ? cotangents : states, of_dk ? p.wide_cotangents : p.wide_states),
      {nullptr, 0}, 0, block.results(p, of_dk ? dk : dr, static_cast<T*>(nullptr), p.keys),
      (of_dk ? block.tile - key_tiles : block.tile) * kExtent,
      {!of_dk, slopes + one.row(p, 0), ends + one.keys_of_chunk(p, block.chunk), p.heads,
       block.state<T>(p, cotangents, p.wide_cotangents)});
}

}  // namespace

// Names: dtype, extent of a tile, kind.
#define FB_WALKS(T, SUFFIX, EXTENT, NAME, KIND)                                               \
  FB_KERNEL void recurrence_outputs_##SUFFIX##_##EXTENT##_##NAME(                             \
      const T* r, const T* k, const T* v, const void* g, const void* u, const void* states,   \
      const unsigned char* resets, T* y, float* sums, RecurrenceProblem problem) {            \
    make_outputs<T, EXTENT, KIND>(r, k, v, g, u, states, resets, y, sums, problem);           \
  }                                                                                           \
  FB_KERNEL void recurrence_gradient_##SUFFIX##_##EXTENT##_##NAME(                            \
      const T* r, const T* k, const T* v, const T* dy, const void* g, const void* u,          \
      const void* states, const void* cotangents, const unsigned char* resets, float* dr,     \
      float* dk, T* dv, float* sums, float* slopes, float* ends, RecurrenceProblem problem) { \
    make_gradient<T, EXTENT, KIND>(r, k, v, dy, g, u, states, cotangents, resets, dr, dk, dv, \
                                   sums, slopes, ends, problem);                              \
  }
#define FB_ALL_WALKS(T, SUFFIX)                        \
  FB_WALKS(T, SUFFIX, 32, exclusive, Kind::kExclusive) \
  FB_WALKS(T, SUFFIX, 64, exclusive, Kind::kExclusive) \
  FB_WALKS(T, SUFFIX, 32, inclusive, Kind::kInclusive) \
  FB_WALKS(T, SUFFIX, 64, inclusive_one_decay, Kind::kInclusiveOneDecay)
FB_ALL_WALKS(float, f32)
FB_ALL_WALKS(Bf16, bf16)
FB_ALL_WALKS(F16, f16)

#pragma once
// What the kernels of linear recurrences share: where operands lie, and decays.
#include "fullbore/device/cuda/kernels/elements.h"
#include "fullbore/device/cuda/kernels/recurrence_problem.h"

using fullbore::cuda::RecurrenceProblem;

constexpr float kLeastLogDecay = -20;

typedef float Float2 __attribute__((ext_vector_type(2)));
typedef float Float4 __attribute__((ext_vector_type(4)));

/// exp of a log-decay within its limits; of no number none.
FB_DEVICE float decay_of(float log_decay) {
  const float limited = most(kLeastLogDecay, least(0.0F, log_decay));
  return __nvvm_ex2_approx_f(limited * 1.4426950408889634F);
}

// What is read ahead stays as it lies until it is put into shared memory: a conversion would wait for it.

/// An operand that is f32, or of the dtype of r, k and v.
template <class T>
struct Either {
  const void* first;
  int wide;
  FB_DEVICE unsigned bits(long i) const {
    if (wide != 0 || sizeof(T) == 4) return static_cast<const unsigned*>(first)[i];
    return static_cast<const unsigned short*>(first)[i];
  }
  FB_DEVICE float number(unsigned bits) const {
    if constexpr (sizeof(T) == 4)
      return __builtin_bit_cast(float, bits);
    else
      return wide != 0 ? __builtin_bit_cast(float, bits)
                       : load(T{static_cast<unsigned short>(bits)});
  }
  FB_DEVICE float at(long i) const { return number(bits(i)); }
};

/// A head's rows of [B,T,heads,width], token by token.
template <class T>
struct HeadRows {
  const T* first;
  long stride;
  int width;

  FB_DEVICE HeadRows(const T* base, const RecurrenceProblem& p, int batch, int heads, int head,
                     int of_width)
      : first(base + (static_cast<long>(batch) * p.tokens * heads + head) * of_width),
        stride(static_cast<long>(heads) * of_width),
        width(of_width) {}
  FB_DEVICE T at(int token, int column) const {
    return column < width ? first[token * stride + column] : T{};
  }
};

/// One head of one sequence.
struct OneHead {
  int batch, head, group;
  FB_DEVICE OneHead(const RecurrenceProblem& p, int index)
      : batch(index / p.heads), head(index % p.heads), group(head / (p.heads / p.groups)) {}

  template <class T>
  FB_DEVICE HeadRows<T> keys(const T* of, const RecurrenceProblem& p) const {
    return {of, p, batch, p.groups, group, p.keys};
  }
  template <class T>
  FB_DEVICE HeadRows<T> values(const T* of, const RecurrenceProblem& p) const {
    return {of, p, batch, p.heads, head, p.values};
  }
  /// Of a token: [B,T,H].
  FB_DEVICE long row(const RecurrenceProblem& p, int token) const {
    return (static_cast<long>(batch) * p.tokens + token) * p.heads + head;
  }
  /// The first key of [chunks,B,H,K].
  FB_DEVICE long keys_of_chunk(const RecurrenceProblem& p, int chunk) const {
    return ((static_cast<long>(chunk) * p.batch + batch) * p.heads + head) * p.keys;
  }
};

/// A head's log-decays [B,T,H,K or 1].
template <class T>
struct Decays {
  Either<T> g;
  long first, stride;
  int keys, step;

  FB_DEVICE Decays(const void* of, const RecurrenceProblem& p, const OneHead& one)
      : g{of, p.wide_g},
        first(one.row(p, 0) * p.decays),
        stride(static_cast<long>(p.heads) * p.decays),
        keys(p.keys),
        step(p.decays == 1 ? 0 : 1) {}
  FB_DEVICE unsigned bits(int token, int key) const {
    return key < keys ? g.bits(first + token * stride + key * step) : 0;
  }
  FB_DEVICE float number(unsigned bits) const { return decay_of(g.number(bits)); }
};

/// Of tokens in the order in which a walk meets them, from position 0 on: is the state made zero before the walk comes to
/// the token? In reverse the token behind it, which was met before, says so, and of none is left when all were met.
struct Resets {
  const unsigned char* first;  ///< of the token at position 0; null: there are none
  int direction;

  FB_DEVICE Resets(const unsigned char* of, const RecurrenceProblem& p, const OneHead& one,
                   int token0, int tokens, bool in_reverse)
      : first(of == nullptr ? nullptr
                            : of + static_cast<long>(one.batch) * p.tokens + token0 +
                                  (in_reverse ? tokens : 0)),
        direction(in_reverse ? -1 : 1),
        skips_first(in_reverse) {}
  FB_DEVICE bool at(int position) const {
    return first != nullptr && !(skips_first && position == 0) && first[direction * position] != 0;
  }

 private:
  bool skips_first;
};

/// The position of the next reset behind `at`, or `count` if there is none before it. `resets`: a bit for each position.
FB_DEVICE int end_of_segment(unsigned resets, int at, int count) {
  const unsigned behind = resets >> at >> 1;
  return behind == 0 ? count : least(count, at + 1 + __builtin_ctz(behind));
}

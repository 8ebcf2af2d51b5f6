#pragma once
#include <string>

#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"
#include "fullbore/device/cpu/recurrence/gemm_operands.h"
#include "fullbore/ops/recurrence.h"

namespace fullbore::cpu {

/// One chunk of one stream.
struct ChunkPlace {
  int64_t batch = 0;
  int64_t index = 0;
  int64_t first = 0;  ///< token
  int64_t tokens = 0;
};

/// What the kernels of a recurrence share: extents, and how to read, multiply and write parts of a chunk.
/// Matrices of a chunk have a row per token (or per key), `key_stride()` or `token_stride()` apart; what
/// lies in a row beyond its width is never looked at, except that log-decays are 0 there.
class ChunkLoops {
 public:
  /// Indices of the operands k, v and g. `with_vnni`: matmuls are made of VNNI pairs.
  ChunkLoops(const KernelRequest& request, size_t k, size_t v, size_t g, VectorUnit unit,
             bool with_vnni = false);

  const RecurrenceShape shape;
  const DType dtype;        ///< of r, k, v, y and their cotangents
  const DType decay_dtype;  ///< of g
  const bool vnni;
  const GemmUnit<float>& gemm;
  const RowUnit& rows;

  /// "recurrence_outputs avx512 f32 2 x 256 tokens, 4 heads [32,64], chunks of 64"
  /// `amx`: VNNI pairs are multiplied by tiles.
  std::string text(const char* op, bool amx = false) const;
  double nanoseconds(double flops) const;

  int64_t key_stride() const { return round_up(shape.keys, kRowStep); }
  int64_t token_stride() const { return round_up(shape.chunk, kRowStep); }
  int64_t shared_heads() const { return shape.heads / shape.groups; }
  int64_t state_elements() const { return shape.keys * shape.values; }
  ChunkPlace place(int64_t batch, int64_t index) const {
    return {batch, index, index * shape.chunk, shape.chunk_tokens(index)};
  }
  /// Of a kernel whose items are the groups of each chunk of each stream, groups fastest.
  ChunkPlace place_of(int64_t item) const {
    return place(item / (shape.groups * shape.chunks), item / shape.groups % shape.chunks);
  }
  /// First element of one head's state among those of all chunks.
  int64_t state_at(const ChunkPlace& place, int64_t head) const {
    return ((place.index * shape.batch + place.batch) * shape.heads + head) * state_elements();
  }

  /// The tokens of one head of [B,T,heads,width], f32, where they lie or copied. With as many columns in
  /// the copy as whole vectors need, rows that are no whole vectors are copied too.
  Rows read(const void* tensor, DType type, int64_t heads, int64_t head, int64_t width,
            const ChunkPlace& place, MutableRows copy) const;
  /// The same for matmuls: what VNNI pairs can be made of is not widened.
  SourceMatrix operand(const void* tensor, int64_t heads, int64_t head, int64_t width,
                       const ChunkPlace& place, MutableRows copy) const;
  /// Where the tokens of one head of a result are to be made, f32: where they go or, in other cases, in
  /// `copy`. `write` then moves them if they are to be moved.
  MutableRows results(void* tensor, DType type, int64_t heads, int64_t head, int64_t width,
                      const ChunkPlace& place, MutableRows copy) const;
  void write(Rows from, void* tensor, DType type, int64_t heads, int64_t head, int64_t width,
             const ChunkPlace& place) const;
  /// Asks memory for what will be read or written soon: rows that are heads apart and borders of chunks
  /// come in an order that the processor does not foresee.
  void fetch(const void* tensor, DType type, int64_t heads, int64_t head, int64_t width,
             const ChunkPlace& place) const;
  /// `count` elements of a tensor from one on, f32, where they lie or copied.
  const float* numbers(const void* tensor, DType type, int64_t first, int64_t count,
                       float* copy) const;

 private:
  VectorUnit vector_unit_;
  decltype(GemmUnit<float>::round) round_;
};

/// An operand with a state, or the cotangent of one, for each chunk of each stream and head.
class StatesOperand {
 public:
  StatesOperand(const KernelRequest& request, size_t index)
      : index_(index), dtype_(request.input(index).dtype), zero_(request.is_zero(index)) {}

  /// Is one all 0? What a matmul with it would be is known. Where the operand as a whole is, which the
  /// graph says, it is not looked at.
  bool is_zero(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
               int64_t head) const;
  void fetch(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
             int64_t head) const;
  /// [K,V], f32, where it lies or copied.
  Rows rows(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place, int64_t head,
            float* copy) const;
  /// The same for matmuls: what VNNI pairs can be made of is not widened.
  SourceMatrix operand(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
                       int64_t head, float* copy) const;

 private:
  const char* at(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
                 int64_t head) const {
    return static_cast<const char*>(buffers[index_]) +
           loops.state_at(place, head) * dtype_bytes(dtype_);
  }

  size_t index_;
  DType dtype_;
  bool zero_;
};

/// Which tokens of a chunk know of which: the number of resets up to each.
class Segments {
 public:
  explicit Segments(int64_t* numbers) : numbers_(numbers) {}
  /// `resets` [B,T] or null.
  void read(const uint8_t* resets, const RecurrenceShape& shape, const ChunkPlace& place);

  bool any() const { return any_; }
  bool reads_state(int64_t t) const { return !any_ || numbers_[t] == 0; }
  bool writes_state(int64_t t) const { return !any_ || numbers_[t] == numbers_[tokens_ - 1]; }
  bool passes_through() const { return reads_state(tokens_ - 1); }
  /// The first token of the segment of t.
  int64_t first_of(int64_t t) const;

 private:
  int64_t* numbers_;
  int64_t tokens_ = 0;
  bool any_ = false;
};

/// The sums of the log-decays of one head from a chunk's beginning on: of the tokens before t, `before`;
/// with t's own, `after`; up to where y_t reads, `read`. Rows of keys or, with one decay for all keys, a
/// row of tokens.
class DecaySums {
 public:
  DecaySums(const ChunkLoops& loops, Scratch& scratch);
  void read_decays(const ChunkLoops& loops, const void* g, int64_t head, const ChunkPlace& place);

  Rows before() const { return {sums_, stride_}; }
  Rows after() const { return {sums_ + step_, stride_}; }
  Rows read() const { return inclusive_ ? after() : before(); }
  const float* total() const { return sums_ + tokens_ * step_; }
  Rows decays() const { return g_; }  ///< as they were given

 private:
  Rows g_;
  MutableRows copy_;
  float* sums_;
  int64_t stride_, step_, tokens_ = 0;
  bool inclusive_;
};

}  // namespace fullbore::cpu

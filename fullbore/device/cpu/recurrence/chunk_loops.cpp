#include "fullbore/device/cpu/recurrence/chunk_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace fullbore::cpu {

ChunkLoops::ChunkLoops(const KernelRequest& request, size_t k, size_t v, size_t g, VectorUnit unit,
                       bool with_vnni)
    : shape(request.input(k), request.input(v), request.input(g), request.node().attributes),
      dtype(request.input(k).dtype),
      decay_dtype(request.input(g).dtype),
      vnni(with_vnni),
      gemm(*gemm_unit<float>(unit)),
      rows(row_unit(unit)),
      vector_unit_(unit),
      // Pairs: by the processor itself.
      round_(with_vnni ? gemm_unit<VnniPair>(unit)->round : gemm.round) {}

std::string ChunkLoops::text(const char* op, bool amx) const {
  return fmt::format("{} {}{} {} {} x {} tokens, {} heads [{},{}], chunks of {}{}", op,
                     vector_unit_name(vector_unit_),
                     amx    ? " amx"
                     : vnni ? " vnni"
                            : "",
                     dtype_name(dtype), shape.batch, shape.tokens, shape.heads, shape.keys,
                     shape.values, shape.chunk, shape.scalar_decay() ? ", one decay" : "");
}

// Half of the time is theirs; VNNI pairs shorten the whole by a third.
double ChunkLoops::nanoseconds(double flops) const {
  return 2 * static_cast<double>(shape.batch * shape.tokens * shape.heads) * flops /
         ((vnni ? 1.5 : 1) * gemm.flops_per_nanosecond);
}

Rows ChunkLoops::read(const void* tensor, DType type, int64_t heads, int64_t head, int64_t width,
                      const ChunkPlace& place, MutableRows to) const {
  const int64_t first = ((place.batch * shape.tokens + place.first) * heads + head) * width;
  if (type == DType::f32 && to.stride == width)
    return {static_cast<const float*>(tensor) + first, heads * width};
  const char* from = static_cast<const char*>(tensor) + first * dtype_bytes(type);
  gemm.copy_rows({from, type, heads * width, place.tokens, width}, to.data, to.stride);
  return to;
}

SourceMatrix ChunkLoops::operand(const void* tensor, int64_t heads, int64_t head, int64_t width,
                                 const ChunkPlace& place, MutableRows copy) const {
  if (!vnni)
    return matrix_of(read(tensor, dtype, heads, head, width, place, copy), place.tokens, width);
  const int64_t first = ((place.batch * shape.tokens + place.first) * heads + head) * width;
  return {static_cast<const char*>(tensor) + first * dtype_bytes(dtype), dtype, heads * width,
          place.tokens, width};
}

namespace {

constexpr int64_t kLineBytes = 64;

// Into the second cache: the first one is full of what is at work.
void fetch_line(const char* from) { __builtin_prefetch(from, 0, 2); }

}  // namespace

void ChunkLoops::fetch(const void* tensor, DType type, int64_t heads, int64_t head, int64_t width,
                       const ChunkPlace& place) const {
  const int64_t first = ((place.batch * shape.tokens + place.first) * heads + head) * width;
  const char* from = static_cast<const char*>(tensor) + first * dtype_bytes(type);
  const int64_t bytes = width * dtype_bytes(type), stride = heads * bytes;
  for (int64_t at = 0; at < bytes; at += kLineBytes)
    for (int64_t t = 0; t < place.tokens; ++t) fetch_line(from + t * stride + at);
}

MutableRows ChunkLoops::results(void* tensor, DType type, int64_t heads, int64_t head,
                                int64_t width, const ChunkPlace& place, MutableRows copy) const {
  if (type != DType::f32 || copy.stride != width) return copy;
  const int64_t first = ((place.batch * shape.tokens + place.first) * heads + head) * width;
  return {static_cast<float*>(tensor) + first, heads * width};
}

void ChunkLoops::write(Rows from, void* tensor, DType type, int64_t heads, int64_t head,
                       int64_t width, const ChunkPlace& place) const {
  const int64_t first = ((place.batch * shape.tokens + place.first) * heads + head) * width;
  char* to = static_cast<char*>(tensor) + first * dtype_bytes(type);
  if (to == reinterpret_cast<const char*>(from.data)) return;
  if (type == DType::f32)
    gemm.copy_rows({from.data, DType::f32, from.stride, place.tokens, width},
                   reinterpret_cast<float*>(to), heads * width);
  else
    round_(from.data, from.stride, to, heads * width, type, place.tokens, width);
}

const float* ChunkLoops::numbers(const void* tensor, DType type, int64_t first, int64_t count,
                                 float* to) const {
  if (type == DType::f32) return static_cast<const float*>(tensor) + first;
  const char* from = static_cast<const char*>(tensor) + first * dtype_bytes(type);
  gemm.copy_rows({from, type, count, 1, count}, to, count);
  return to;
}

bool StatesOperand::is_zero(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
                            int64_t head) const {
  if (zero_) return true;
  const char* from = at(loops, buffers, place, head);
  const int64_t bytes = loops.state_elements() * dtype_bytes(dtype_);
  constexpr int64_t kWords = 8, kBlock = kWords * sizeof(uint64_t);
  int64_t done = 0;
  for (; done + kBlock <= bytes; done += kBlock) {
    uint64_t words[kWords], any = 0;
    std::memcpy(words, from + done, kBlock);
    for (const uint64_t word : words) any |= word;
    if (any != 0) return false;
  }
  return std::all_of(from + done, from + bytes, [](char byte) { return byte == 0; });
}

void StatesOperand::fetch(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
                          int64_t head) const {
  if (zero_) return;
  const char* from = at(loops, buffers, place, head);
  const int64_t bytes = loops.state_elements() * dtype_bytes(dtype_);
  for (int64_t done = 0; done < bytes; done += kLineBytes) fetch_line(from + done);
}

Rows StatesOperand::rows(const ChunkLoops& loops, void* const* buffers, const ChunkPlace& place,
                         int64_t head, float* copy) const {
  return {loops.numbers(buffers[index_], dtype_, loops.state_at(place, head),
                        loops.state_elements(), copy),
          loops.shape.values};
}

SourceMatrix StatesOperand::operand(const ChunkLoops& loops, void* const* buffers,
                                    const ChunkPlace& place, int64_t head, float* copy) const {
  const int64_t keys = loops.shape.keys, values = loops.shape.values;
  if (!loops.vnni || dtype_ == DType::f16)
    return matrix_of(rows(loops, buffers, place, head, copy), keys, values);
  return {at(loops, buffers, place, head), dtype_, values, keys, values};
}

void Segments::read(const uint8_t* resets, const RecurrenceShape& shape, const ChunkPlace& place) {
  tokens_ = place.tokens;
  any_ = false;
  if (!resets) return;
  int64_t number = 0;
  for (int64_t t = 0; t < tokens_; ++t) {
    if (resets[place.batch * shape.tokens + place.first + t] != 0) ++number;
    numbers_[t] = number;
  }
  any_ = number > 0;
}

int64_t Segments::first_of(int64_t t) const {
  if (!any_) return 0;
  return std::lower_bound(numbers_, numbers_ + t, numbers_[t]) - numbers_;
}

DecaySums::DecaySums(const ChunkLoops& loops, Scratch& scratch)
    : inclusive_(loops.shape.inclusive) {
  const bool scalar = loops.shape.scalar_decay();
  step_ = scalar ? 1 : loops.key_stride();
  stride_ = step_;
  copy_ = {scratch.take<float>(loops.shape.chunk * step_), step_};
  // A row of tokens is read in whole vectors.
  sums_ = scratch.take<float>(scalar ? loops.token_stride() + kRowStep
                                     : (loops.shape.chunk + 1) * step_);
}

void DecaySums::read_decays(const ChunkLoops& loops, const void* g, int64_t head,
                            const ChunkPlace& place) {
  tokens_ = place.tokens;
  const RecurrenceShape& shape = loops.shape;
  g_ = loops.read(g, loops.decay_dtype, shape.heads, head, shape.decays, place, copy_);
  constexpr auto kLeast = static_cast<float>(kLeastLogDecay);
  if (!shape.scalar_decay()) {
    if (step_ > shape.keys)
      for (int64_t t = 0; t < tokens_; ++t)
        std::fill(copy_.row(t) + shape.keys, copy_.row(t) + step_, 0.0F);
    loops.rows.running(tokens_, step_, g_, kLeast, {sums_, stride_});
    return;
  }
  sums_[0] = 0;
  for (int64_t t = 0; t < tokens_; ++t) {
    const float given = *g_.row(t);
    const float limited = given < kLeast ? kLeast : given > 0 ? 0 : given;
    sums_[t + 1] = sums_[t] + limited;
  }
  std::fill(sums_ + tokens_ + 1, sums_ + loops.token_stride() + kRowStep, 0.0F);
}

}  // namespace fullbore::cpu

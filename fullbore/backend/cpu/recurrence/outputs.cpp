#include <algorithm>

#include "fullbore/backend/cpu/recurrence/one_token.h"
#include "fullbore/backend/cpu/recurrence/pair_weights.h"
#include "fullbore/backend/cpu/recurrence/recurrence.h"

namespace fullbore::cpu {
namespace {

class RecurrenceOutputs final : public Kernel {
 public:
  RecurrenceOutputs(const KernelRequest& request, VectorUnit unit)
      : loops_(request, 1, 2, 3, unit),
        shape_(loops_.shape),
        states_(shape_.bonus() ? 5 : 4),
        bonus_dtype_(shape_.bonus() ? request.input(4).dtype : DType::f32),
        states_dtype_(request.input(states_).dtype) {}

  int64_t items() const override { return shape_.batch * shape_.groups * shape_.chunks; }
  double nanoseconds() const override {
    return loops_.nanoseconds(recurrence_pair_flops(shape_) + recurrence_state_flops(shape_));
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return loops_.text("recurrence_outputs"); }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[output() + 1]) + worker_bytes() * worker);
    Workspace w(loops_, scratch);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t stream = item / (shape_.groups * shape_.chunks);
      const int64_t group = item % shape_.groups;
      const ChunkPlace place = loops_.place(stream, item / shape_.groups % shape_.chunks);
      const auto* resets =
          shape_.resets ? static_cast<const uint8_t*>(buffers[states_ + 1]) : nullptr;
      w.segments.read(resets, shape_, place);
      w.pairs.read_keys(loops_, buffers[0], buffers[1], group, place);
      for (int64_t i = 0; i < loops_.shared_heads(); ++i)
        of_head(buffers, group * loops_.shared_heads() + i, place, w);
    }
  }

 private:
  struct Workspace {
    DecaySums sums;
    Segments segments;
    PairWeights pairs;
    MutableRows v, y, left, readers;
    float *state, *u;

    Workspace(const ChunkLoops& loops, Scratch& scratch)
        : sums(loops, scratch),
          segments(scratch.take<int64_t>(loops.shape.chunk)),
          pairs(loops, scratch),
          v{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          y{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          left{scratch.take<float>(
                   std::max(loops.shape.chunk * loops.key_stride(), loops.token_stride())),
               loops.key_stride()},
          readers{scratch.take<float>(loops.shape.chunk * loops.key_stride()), loops.key_stride()},
          state(scratch.take<float>(loops.state_elements())),
          u(scratch.take<float>(loops.key_stride())) {}
  };

  size_t output() const { return states_ + (shape_.resets ? 2 : 1); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, scratch);
    return scratch.bytes();
  }

  void of_head(void* const* buffers, int64_t head, const ChunkPlace& place, Workspace& w) const {
    w.sums.read_decays(loops_, buffers[3], head, place);
    const Rows v =
        loops_.read(buffers[2], loops_.dtype, shape_.heads, head, shape_.values, place, w.v);
    const float* u = nullptr;
    if (shape_.bonus()) {
      const float* bonus =
          loops_.numbers(buffers[4], bonus_dtype_, head * shape_.keys, shape_.keys, w.u);
      if (bonus != w.u) std::copy_n(bonus, shape_.keys, w.u);
      u = w.u;
    }
    const MutableRows y = result(buffers[output()], head, place, w);
    w.pairs.begin(loops_, w.sums, place);
    for (int64_t i = 0; i < band_count(place.tokens); ++i) {
      const Band band = band_of(i, place.tokens);
      w.pairs.make(loops_, w.sums, w.segments, u, i, place);
      loops_.multiply(band.count(), shape_.values, band.end,
                      ChunkLoops::by_row({w.pairs.weights.row(band.first), w.pairs.weights.stride}),
                      v, {y.row(band.first), y.stride}, false);
    }
    read_state(place, w);
    const float* state =
        loops_.numbers(buffers[states_], states_dtype_, loops_.state_at(place, head),
                       loops_.state_elements(), w.state);
    loops_.multiply(place.tokens, shape_.values, shape_.keys, ChunkLoops::by_row(w.readers),
                    {state, shape_.values}, y, true);
    if (loops_.dtype != DType::f32)
      loops_.write(y, buffers[output()], loops_.dtype, shape_.heads, head, shape_.values, place);
  }

  // Where y is summed: in f32 where it lies.
  MutableRows result(void* tensor, int64_t head, const ChunkPlace& place, Workspace& w) const {
    if (loops_.dtype != DType::f32) return w.y;
    const Rows lies =
        loops_.read(tensor, DType::f32, shape_.heads, head, shape_.values, place, w.y);
    return {static_cast<float*>(tensor) + (lies.data - static_cast<const float*>(tensor)),
            lies.stride};
  }

  // readers = r times what is left of the state before the chunk
  void read_state(const ChunkPlace& place, Workspace& w) const {
    w.pairs.state_decays(loops_, w.sums, w.segments, place, w.left);
    if (shape_.scalar_decay())
      loops_.rows.scale(place.tokens, loops_.key_stride(), w.pairs.r, w.left.data, w.readers);
    else
      loops_.rows.multiply(place.tokens, loops_.key_stride(), w.pairs.r, w.left, w.readers);
  }

  ChunkLoops loops_;
  const RecurrenceShape& shape_;
  size_t states_;  ///< their index among the operands
  DType bonus_dtype_, states_dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrence_outputs(const KernelRequest& request, VectorUnit unit) {
  const RecurrenceShape shape(request.input(1), request.input(2), request.input(3),
                              request.node().attributes);
  if (shape.chunk == 1) return make_one_token_outputs(request, unit);
  return std::make_unique<RecurrenceOutputs>(request, unit);
}
std::unique_ptr<Kernel> make_recurrence_outputs(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_recurrence_outputs(request, this_processor().vector_unit);
}

}  // namespace fullbore::cpu

#include <algorithm>

#include "fullbore/backend/cpu/recurrence/chunk_gradient.h"
#include "fullbore/backend/cpu/recurrence/recurrence.h"

namespace fullbore::cpu {
namespace {

class RecurrenceGradient final : public Kernel {
 public:
  RecurrenceGradient(const KernelRequest& request, VectorUnit unit)
      : loops_(request, 1, 2, 4, unit),
        shape_(loops_.shape),
        states_(shape_.bonus() ? 6 : 5),
        bonus_dtype_(shape_.bonus() ? request.input(5).dtype : DType::f32),
        states_dtype_(request.input(states_).dtype),
        cotangents_dtype_(request.input(states_ + 1).dtype) {}

  int64_t items() const override { return shape_.batch * shape_.groups * shape_.chunks; }
  double nanoseconds() const override {
    return loops_.nanoseconds(2.5 * recurrence_pair_flops(shape_) +
                              3 * recurrence_state_flops(shape_));
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return loops_.text("recurrence_gradient"); }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const size_t results = shape_.bonus() ? 5 : 4;
    Scratch scratch(static_cast<char*>(buffers[first_result() + results]) +
                    worker_bytes() * worker);
    Workspace w(loops_, scratch);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t stream = item / (shape_.groups * shape_.chunks);
      const int64_t group = item % shape_.groups;
      of_group(buffers, group, loops_.place(stream, item / shape_.groups % shape_.chunks), w);
    }
  }

 private:
  struct Workspace {
    ChunkGradient gradient;
    MutableRows v, dy;
    float *u, *state, *cotangent;

    Workspace(const ChunkLoops& loops, Scratch& scratch)
        : gradient(loops, scratch),
          v{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          dy{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          u(scratch.take<float>(loops.key_stride())),
          state(scratch.take<float>(loops.state_elements())),
          cotangent(scratch.take<float>(loops.state_elements())) {}
  };

  size_t first_result() const { return states_ + (shape_.resets ? 3 : 2); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, scratch);
    return scratch.bytes();
  }

  void of_group(void* const* buffers, int64_t group, const ChunkPlace& place, Workspace& w) const {
    const size_t results = first_result();
    const auto* resets =
        shape_.resets ? static_cast<const uint8_t*>(buffers[states_ + 2]) : nullptr;
    w.gradient.begin_group(buffers[0], buffers[1], resets, group, place);
    for (int64_t i = 0; i < loops_.shared_heads(); ++i)
      of_head(buffers, group * loops_.shared_heads() + i, place, w);
    w.gradient.end_group();
    const auto write = [&](Rows from, size_t result) {
      loops_.write(from, buffers[results + result], loops_.dtype, shape_.groups, group, shape_.keys,
                   place);
    };
    write(w.gradient.dr, 0);
    write(w.gradient.dk, 1);
  }

  void of_head(void* const* buffers, int64_t head, const ChunkPlace& place, Workspace& w) const {
    const size_t results = first_result();
    const auto read = [&](size_t operand, MutableRows copy) {
      return loops_.read(buffers[operand], loops_.dtype, shape_.heads, head, shape_.values, place,
                         copy);
    };
    const auto of_states = [&](size_t operand, DType dtype, float* copy) {
      return Rows{loops_.numbers(buffers[operand], dtype, loops_.state_at(place, head),
                                 loops_.state_elements(), copy),
                  shape_.values};
    };
    if (shape_.bonus()) {
      const int64_t first = head * shape_.keys;
      const float* u = loops_.numbers(buffers[5], bonus_dtype_, first, shape_.keys, w.u);
      if (u != w.u) std::copy_n(u, shape_.keys, w.u);
    }
    w.gradient.of_head({.v = read(2, w.v),
                        .dy = read(3, w.dy),
                        .state = of_states(states_, states_dtype_, w.state),
                        .cotangent = of_states(states_ + 1, cotangents_dtype_, w.cotangent),
                        .u = shape_.bonus() ? w.u : nullptr,
                        .g = buffers[4],
                        .head = head});
    loops_.write(w.gradient.dv, buffers[results + 2], loops_.dtype, shape_.heads, head,
                 shape_.values, place);
    loops_.write(w.gradient.dg, buffers[results + 3], DType::f32, shape_.heads, head, shape_.decays,
                 place);
    if (shape_.bonus())
      std::copy_n(
          w.gradient.du, shape_.keys,
          static_cast<float*>(buffers[results + 4]) +
              ((place.index * shape_.batch + place.batch) * shape_.heads + head) * shape_.keys);
  }

  ChunkLoops loops_;
  const RecurrenceShape& shape_;
  size_t states_;  ///< their index among the operands
  DType bonus_dtype_, states_dtype_, cotangents_dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrence_gradient(const KernelRequest& request, VectorUnit unit) {
  return std::make_unique<RecurrenceGradient>(request, unit);
}
std::unique_ptr<Kernel> make_recurrence_gradient(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_recurrence_gradient(request, this_processor().vector_unit);
}

}  // namespace fullbore::cpu

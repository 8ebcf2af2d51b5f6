#include <algorithm>
#include <optional>

#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/recurrence/chunk_gradient.h"
#include "fullbore/device/cpu/recurrence/recurrence.h"

namespace fullbore::cpu {
namespace {

template <class P>
class RecurrenceGradient final : public CpuKernel {
 public:
  RecurrenceGradient(const KernelRequest& request, const MatmulUnits& units)
      : loops_(request, 1, 2, 4, units.vector_unit, GemmOperands<P>::kVnni),
        gemm_(units),
        shape_(loops_.shape),
        states_index_(shape_.bonus() ? 6 : 5),
        states_(request, states_index_),
        cotangents_(request, states_index_ + 1),
        bonus_dtype_(shape_.bonus() ? request.input(5).dtype : DType::f32) {}

  int64_t items() const override { return shape_.batch * shape_.groups * shape_.chunks; }
  double nanoseconds() const override {
    return loops_.nanoseconds(2.5 * recurrence_pair_flops(shape_) +
                              3 * recurrence_state_flops(shape_));
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override {
    return loops_.text("recurrence_gradient", gemm_.uses_amx());
  }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const size_t results = shape_.bonus() ? 5 : 4;
    Scratch scratch(static_cast<char*>(buffers[first_result() + results]) +
                    worker_bytes() * worker);
    Workspace w(loops_, gemm_, scratch);
    std::optional<AmxTiles> amx;
    if (gemm_.uses_amx()) amx.emplace();
    for (int64_t item = begin; item < end; ++item) of_item(buffers, item, item + 1 < end, w);
  }

 private:
  struct Workspace {
    ChunkGradient<P> gradient;
    MutableRows v, dy;
    float *u, *state, *cotangent;

    Workspace(const ChunkLoops& loops, const GemmOperands<P>& gemm, Scratch& scratch)
        : gradient(loops, gemm, scratch),
          v{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          dy{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          u(scratch.take<float>(loops.key_stride())),
          state(scratch.take<float>(loops.state_elements())),
          cotangent(scratch.take<float>(loops.state_elements())) {}
  };

  size_t first_result() const { return states_index_ + (shape_.resets ? 3 : 2); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, gemm_, scratch);
    return scratch.bytes();
  }

  void fetch_item(void* const* buffers, int64_t item) const {
    const int64_t group = item % shape_.groups;
    const ChunkPlace place = loops_.place_of(item);
    for (const size_t buffer : {size_t{0}, size_t{1}, first_result(), first_result() + 1})
      loops_.fetch(buffers[buffer], loops_.dtype, shape_.groups, group, shape_.keys, place);
    fetch_head(buffers, group * loops_.shared_heads(), place);
  }

  void fetch_head(void* const* buffers, int64_t head, const ChunkPlace& place) const {
    loops_.fetch(buffers[4], loops_.decay_dtype, shape_.heads, head, shape_.decays, place);
    for (const size_t buffer : {size_t{2}, size_t{3}, first_result() + 2})
      loops_.fetch(buffers[buffer], loops_.dtype, shape_.heads, head, shape_.values, place);
    states_.fetch(loops_, buffers, place, head);
    cotangents_.fetch(loops_, buffers, place, head);
    loops_.fetch(buffers[first_result() + 3], DType::f32, shape_.heads, head, shape_.decays, place);
  }

  void of_item(void* const* buffers, int64_t item, bool more, Workspace& w) const {
    const int64_t group = item % shape_.groups;
    const ChunkPlace place = loops_.place_of(item);
    const size_t results = first_result();
    const auto* resets =
        shape_.resets ? static_cast<const uint8_t*>(buffers[states_index_ + 2]) : nullptr;
    w.gradient.begin_group({.r = buffers[0],
                            .k = buffers[1],
                            .dr = buffers[results],
                            .dk = buffers[results + 1],
                            .resets = resets,
                            .group = group},
                           place);
    for (int64_t i = 0; i < loops_.shared_heads(); ++i) {
      const int64_t head = group * loops_.shared_heads() + i;
      if (i + 1 < loops_.shared_heads())
        fetch_head(buffers, head + 1, place);
      else if (more)
        fetch_item(buffers, item + 1);
      of_head(buffers, head, place, w);
    }
    w.gradient.end_group();
  }

  void of_head(void* const* buffers, int64_t head, const ChunkPlace& place, Workspace& w) const {
    const size_t results = first_result();
    const auto matrix = [&](size_t operand, MutableRows copy) {
      return loops_.operand(buffers[operand], shape_.heads, head, shape_.values, place, copy);
    };
    const auto of_states = [&](const StatesOperand& operand, float* copy) {
      return operand.is_zero(loops_, buffers, place, head)
                 ? Rows{}
                 : operand.rows(loops_, buffers, place, head, copy);
    };
    if (shape_.bonus()) {
      const int64_t first = head * shape_.keys;
      const float* u = loops_.numbers(buffers[5], bonus_dtype_, first, shape_.keys, w.u);
      if (u != w.u) std::copy_n(u, shape_.keys, w.u);
    }
    w.gradient.of_head({.v = matrix(2, w.v),
                        .dy = matrix(3, w.dy),
                        .state = of_states(states_, w.state),
                        .cotangent = of_states(cotangents_, w.cotangent),
                        .u = shape_.bonus() ? w.u : nullptr,
                        .g = buffers[4],
                        .dv = buffers[results + 2],
                        .dg = buffers[results + 3],
                        .head = head});
    if (shape_.bonus())
      std::copy_n(
          w.gradient.du, shape_.keys,
          static_cast<float*>(buffers[results + 4]) +
              ((place.index * shape_.batch + place.batch) * shape_.heads + head) * shape_.keys);
  }

  ChunkLoops loops_;
  GemmOperands<P> gemm_;
  const RecurrenceShape& shape_;
  size_t states_index_;  ///< among the operands
  StatesOperand states_, cotangents_;
  DType bonus_dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrence_gradient(const KernelRequest& request,
                                                 const MatmulUnits& units) {
  if (units.vnni(request.input(0).dtype))
    return std::make_unique<RecurrenceGradient<VnniPair>>(request, units);
  return std::make_unique<RecurrenceGradient<float>>(request, units);
}
std::unique_ptr<Kernel> make_recurrence_gradient(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_recurrence_gradient(request, MatmulUnits::of_this_processor());
}

}  // namespace fullbore::cpu

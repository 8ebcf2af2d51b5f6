#include <algorithm>
#include <optional>

#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/recurrence/one_token.h"
#include "fullbore/device/cpu/recurrence/pair_weights.h"
#include "fullbore/device/cpu/recurrence/recurrence.h"

namespace fullbore::cpu {
namespace {

template <class P>
class RecurrenceOutputs final : public CpuKernel {
 public:
  RecurrenceOutputs(const KernelRequest& request, const MatmulUnits& units)
      : loops_(request, 1, 2, 3, units.vector_unit, GemmOperands<P>::kVnni),
        gemm_(units),
        shape_(loops_.shape),
        states_index_(shape_.bonus() ? 5 : 4),
        states_(request, states_index_),
        bonus_dtype_(shape_.bonus() ? request.input(4).dtype : DType::f32) {}

  int64_t items() const override { return shape_.batch * shape_.groups * shape_.chunks; }
  double nanoseconds() const override {
    return loops_.nanoseconds(recurrence_pair_flops(shape_) + recurrence_state_flops(shape_));
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override {
    return loops_.text("recurrence_outputs", gemm_.uses_amx());
  }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[output() + 1]) + worker_bytes() * worker);
    Workspace w(loops_, gemm_, scratch);
    std::optional<AmxTiles> amx;
    if (gemm_.uses_amx()) amx.emplace();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % shape_.groups;
      const ChunkPlace place = loops_.place_of(item);
      const auto* resets =
          shape_.resets ? static_cast<const uint8_t*>(buffers[states_index_ + 1]) : nullptr;
      w.segments.read(resets, shape_, place);
      w.pairs.read_keys({buffers[0], buffers[1], group, shape_.bonus()}, w.segments, place);
      for (int64_t i = 0; i < loops_.shared_heads(); ++i) {
        const int64_t head = group * loops_.shared_heads() + i;
        if (i + 1 < loops_.shared_heads())
          fetch_head(buffers, head + 1, place);
        else if (item + 1 < end)
          fetch_item(buffers, item + 1);
        of_head(buffers, head, place, w);
      }
    }
  }

 private:
  struct Workspace {
    DecaySums sums;
    Segments segments;
    PairWeights<P> pairs;
    MutableRows v, y;
    OperandRoom<P> weights_room, values_room;
    float *decays, *state, *u;

    Workspace(const ChunkLoops& loops, const GemmOperands<P>& gemm, Scratch& scratch)
        : sums(loops, scratch),
          segments(scratch.take<int64_t>(loops.shape.chunk)),
          pairs(loops, gemm, false, scratch),
          v{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          y{scratch.take<float>(loops.shape.chunk * loops.shape.values), loops.shape.values},
          weights_room(scratch, loops.shape.chunk, loops.shape.chunk),
          values_room(scratch, loops.shape.chunk, loops.shape.values),
          decays(scratch.take<float>(loops.token_stride())),
          state(scratch.take<float>(loops.state_elements())),
          u(scratch.take<float>(loops.key_stride())) {}
  };

  size_t output() const { return states_index_ + (shape_.resets ? 2 : 1); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, gemm_, scratch);
    return scratch.bytes();
  }

  void fetch_item(void* const* buffers, int64_t item) const {
    const int64_t group = item % shape_.groups;
    const ChunkPlace place = loops_.place_of(item);
    for (const size_t operand : {0, 1})
      loops_.fetch(buffers[operand], loops_.dtype, shape_.groups, group, shape_.keys, place);
    fetch_head(buffers, group * loops_.shared_heads(), place);
  }

  void fetch_head(void* const* buffers, int64_t head, const ChunkPlace& place) const {
    loops_.fetch(buffers[3], loops_.decay_dtype, shape_.heads, head, shape_.decays, place);
    for (const size_t buffer : {size_t{2}, output()})
      loops_.fetch(buffers[buffer], loops_.dtype, shape_.heads, head, shape_.values, place);
    states_.fetch(loops_, buffers, place, head);
  }

  void of_head(void* const* buffers, int64_t head, const ChunkPlace& place, Workspace& w) const {
    w.sums.read_decays(loops_, buffers[3], head, place);
    const float* u = nullptr;
    if (shape_.bonus()) {
      const float* bonus =
          loops_.numbers(buffers[4], bonus_dtype_, head * shape_.keys, shape_.keys, w.u);
      if (bonus != w.u) std::copy_n(bonus, shape_.keys, w.u);
      u = w.u;
    }
    const MutableRows y = loops_.results(buffers[output()], loops_.dtype, shape_.heads, head,
                                         shape_.values, place, w.y);
    w.pairs.begin(w.sums, place);
    const bool carried = !states_.is_zero(loops_, buffers, place, head);
    if (carried)
      w.pairs.read_state(w.sums, w.segments, place,
                         states_.operand(loops_, buffers, place, head, w.state), w.decays, y);
    const GemmOperand<P> values = gemm_.by_columns(
        loops_.operand(buffers[2], shape_.heads, head, shape_.values, place, w.v), w.values_room);
    w.pairs.make(w.sums, w.segments, u, place);
    for (int64_t i = 0; i < tile_count(place.tokens); ++i) {
      const Span tile = tile_of(i, place.tokens);
      const Rows weights = from_row(w.pairs.weights, tile.first);
      gemm_.multiply(tile.count(), shape_.values, tile.end,
                     gemm_.by_rows(matrix_of(weights, tile.count(), tile.end), w.weights_room),
                     values, from_row(y, tile.first), carried);
    }
    loops_.write(y, buffers[output()], loops_.dtype, shape_.heads, head, shape_.values, place);
  }

  ChunkLoops loops_;
  GemmOperands<P> gemm_;
  const RecurrenceShape& shape_;
  size_t states_index_;  ///< among the operands
  StatesOperand states_;
  DType bonus_dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrence_outputs(const KernelRequest& request,
                                                const MatmulUnits& units) {
  const RecurrenceShape shape(request.input(1), request.input(2), request.input(3),
                              request.node().attributes);
  if (shape.chunk == 1) return make_one_token_outputs(request, units.vector_unit);
  if (units.vnni(request.input(0).dtype))
    return std::make_unique<RecurrenceOutputs<VnniPair>>(request, units);
  return std::make_unique<RecurrenceOutputs<float>>(request, units);
}
std::unique_ptr<Kernel> make_recurrence_outputs(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_recurrence_outputs(request, MatmulUnits::of_this_processor());
}

}  // namespace fullbore::cpu

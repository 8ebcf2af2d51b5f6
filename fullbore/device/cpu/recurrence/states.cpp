#include <algorithm>
#include <optional>

#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/recurrence/chunk_loops.h"
#include "fullbore/device/cpu/recurrence/one_token.h"
#include "fullbore/device/cpu/recurrence/recurrence.h"

namespace fullbore::cpu {
namespace {

// Values of an item: all, unless several workers share few items. Each item weighs the keys.
constexpr int64_t kFewItems = 32, kFewValues = 32;

int64_t item_values(const RecurrenceShape& shape, int workers) {
  return workers > 1 && shape.batch * shape.heads < kFewItems ? std::min(shape.values, kFewValues)
                                                              : shape.values;
}

template <class P>
class RecurrenceStates final : public CpuKernel {
 public:
  RecurrenceStates(const KernelRequest& request, const MatmulUnits& units)
      : loops_(request, 0, 1, 2, units.vector_unit, GemmOperands<P>::kVnni),
        gemm_(units),
        shape_(loops_.shape),
        reverse_(request.attribute<bool>("reverse")),
        initial_dtype_(request.input(3).dtype),
        steps_(request.is_read(1) ? shape_.chunks : shape_.chunks - 1),
        parts_{shape_.values, item_values(shape_, request.workers())} {}

  int64_t items() const override { return shape_.batch * shape_.heads * parts_.parts(); }
  double nanoseconds() const override {
    return loops_.nanoseconds(recurrence_state_flops(shape_)) * static_cast<double>(steps_) /
           static_cast<double>(std::max<int64_t>(1, shape_.chunks));
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override {
    return loops_.text(reverse_ ? "recurrence_states reverse" : "recurrence_states",
                       gemm_.uses_amx());
  }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const size_t inputs = shape_.resets ? 5 : 4;
    Scratch scratch(static_cast<char*>(buffers[inputs + 2]) + worker_bytes() * worker);
    Workspace w(loops_, scratch);
    std::optional<AmxTiles> amx;
    if (gemm_.uses_amx()) amx.emplace();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t head = item / parts_.parts();
      walk({buffers, inputs}, head / shape_.heads, head % shape_.heads, item % parts_.parts(), w);
    }
  }

 private:
  struct Workspace {
    DecaySums sums;
    Segments segments;
    MutableRows k, v;
    OperandRoom<P> keys_room, values_room;
    float *weights, *through, *zeros, *ones;

    Workspace(const ChunkLoops& loops, Scratch& scratch)
        : sums(loops, scratch),
          segments(scratch.take<int64_t>(loops.shape.chunk)),
          keys_room(scratch, loops.shape.chunk, loops.shape.keys),
          values_room(scratch, loops.shape.chunk, loops.shape.values) {
      const int64_t chunk = loops.shape.chunk;
      k = {scratch.take<float>(chunk * loops.key_stride()), loops.key_stride()};
      v = {scratch.take<float>(chunk * loops.shape.values), loops.shape.values};
      weights = scratch.take<float>(loops.token_stride());
      const int64_t longest = std::max(loops.key_stride(), loops.token_stride());
      through = scratch.take<float>(loops.key_stride());
      zeros = scratch.take<float>(longest);
      ones = scratch.take<float>(longest);
      if (!zeros) return;
      std::fill_n(zeros, longest, 0.0F);
      std::fill_n(ones, longest, 1.0F);
    }
  };

  struct Call {
    void* const* buffers;
    size_t inputs;
  };

  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, scratch);
    return scratch.bytes();
  }

  void walk(const Call& call, int64_t batch, int64_t head, int64_t part, Workspace& w) const {
    auto* states = static_cast<float*>(call.buffers[call.inputs]);
    auto* last = static_cast<float*>(call.buffers[call.inputs + 1]);
    const int64_t column = parts_.begin(part), columns = parts_.end(part) - column;
    const int64_t head_at = (batch * shape_.heads + head) * loops_.state_elements() + column;
    // Where the state lies before a step of the walk.
    const auto state_before = [&](int64_t step) {
      const int64_t index = reverse_ ? shape_.chunks - 1 - step : step;
      const int64_t stride = shape_.batch * shape_.heads * loops_.state_elements();
      return MutableRows{step == shape_.chunks ? last + head_at : states + index * stride + head_at,
                         shape_.values};
    };
    const char* initial =
        static_cast<const char*>(call.buffers[3]) + head_at * dtype_bytes(initial_dtype_);
    const MutableRows first = state_before(0);
    loops_.gemm.copy_rows({initial, initial_dtype_, shape_.values, shape_.keys, columns},
                          first.data, first.stride);
    const auto place_of = [&](int64_t step) {
      return loops_.place(batch, reverse_ ? shape_.chunks - 1 - step : step);
    };
    if (steps_ > 0) fetch(call, head, place_of(0));
    for (int64_t step = 0; step < steps_; ++step) {
      const ChunkPlace place = place_of(step);
      if (step + 1 < steps_) fetch(call, head, place_of(step + 1));
      weigh(call, head, place, w);
      const MutableRows next = state_before(step + 1);
      loops_.rows.scale(shape_.keys, columns, state_before(step), w.through, next);
      SourceMatrix v =
          loops_.operand(call.buffers[1], shape_.heads, head, shape_.values, place, w.v);
      v.data = static_cast<const char*>(v.data) + column * dtype_bytes(v.dtype);
      v.columns = columns;
      gemm_.multiply(shape_.keys, columns, place.tokens,
                     gemm_.by_columns(matrix_of(w.k, place.tokens, shape_.keys), w.keys_room),
                     gemm_.by_columns(v, w.values_room), next, true);
    }
  }

  void fetch(const Call& call, int64_t head, const ChunkPlace& place) const {
    loops_.fetch(call.buffers[0], loops_.dtype, shape_.groups, head / loops_.shared_heads(),
                 shape_.keys, place);
    loops_.fetch(call.buffers[1], loops_.dtype, shape_.heads, head, shape_.values, place);
    loops_.fetch(call.buffers[2], loops_.decay_dtype, shape_.heads, head, shape_.decays, place);
  }

  // k times what is left of it at the end of the walk's step, and what is left of the state.
  void weigh(const Call& call, int64_t head, const ChunkPlace& place, Workspace& w) const {
    const bool scalar = shape_.scalar_decay();
    const int64_t width = loops_.key_stride(), tokens = place.tokens;
    const RowUnit& rows = loops_.rows;
    const auto* resets = shape_.resets ? static_cast<const uint8_t*>(call.buffers[4]) : nullptr;
    w.segments.read(resets, shape_, place);
    w.sums.read_decays(loops_, call.buffers[2], head, place);
    const int64_t group = head / loops_.shared_heads();
    const Rows k =
        loops_.read(call.buffers[0], loops_.dtype, shape_.groups, group, shape_.keys, place, w.k);
    if (scalar) {
      if (reverse_)
        rows.exponentials(1, round_up(tokens, kRowStep), w.sums.read(), {w.zeros, 0},
                          {w.weights, 0});
      else
        rows.decay(tokens, w.ones, *w.sums.total(), w.sums.after().data, w.weights);
      rows.scale(tokens, width, k, w.weights, w.k);
      rows.decay(1, w.ones, *w.sums.total(), w.zeros, w.through);
      std::fill_n(w.through, shape_.keys, float{w.through[0]});
    } else {
      rows.decayed(tokens, width, k, reverse_ ? w.sums.read() : Rows{w.sums.total(), 0},
                   reverse_ ? Rows{w.zeros, 0} : w.sums.after(), w.k);
      rows.exponentials(1, width, {w.sums.total(), 0}, {w.zeros, 0}, {w.through, 0});
    }
    if (!w.segments.any()) return;
    for (int64_t t = 0; t < tokens; ++t)
      if (!(reverse_ ? w.segments.reads_state(t) : w.segments.writes_state(t)))
        std::fill_n(w.k.row(t), width, 0.0F);
    if (!w.segments.passes_through()) std::fill_n(w.through, shape_.keys, 0.0F);
  }

  ChunkLoops loops_;
  GemmOperands<P> gemm_;
  const RecurrenceShape& shape_;
  bool reverse_;
  DType initial_dtype_;
  int64_t steps_;  ///< the last one makes the state behind all chunks
  Blocks parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrence_states(const KernelRequest& request,
                                               const MatmulUnits& units) {
  const RecurrenceShape shape(request.input(0), request.input(1), request.input(2),
                              request.node().attributes);
  if (shape.chunk == 1) return make_one_token_states(request, units.vector_unit);
  if (units.vnni(request.input(0).dtype))
    return std::make_unique<RecurrenceStates<VnniPair>>(request, units);
  return std::make_unique<RecurrenceStates<float>>(request, units);
}
std::unique_ptr<Kernel> make_recurrence_states(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_recurrence_states(request, MatmulUnits::of_this_processor());
}

}  // namespace fullbore::cpu

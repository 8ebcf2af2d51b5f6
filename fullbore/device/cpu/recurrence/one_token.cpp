#include "fullbore/device/cpu/recurrence/one_token.h"

#include <algorithm>

#include "fullbore/device/cpu/recurrence/chunk_loops.h"

namespace fullbore::cpu {
namespace {

// Values of an item of states, whose columns of the state know nothing of one another.
constexpr int64_t kItemValues = 64;

bool is_reset(const void* resets, const RecurrenceShape& shape, const ChunkPlace& place) {
  return resets &&
         static_cast<const uint8_t*>(resets)[place.batch * shape.tokens + place.first] != 0;
}

/// What is left of each key's row of the state after a token's decay.
class Remainders {
 public:
  Remainders(const ChunkLoops& loops, Scratch& scratch)
      : sums_(loops, scratch),
        zeros_(scratch.take<float>(loops.key_stride())),
        ones_(scratch.take<float>(kRowStep)),
        left_(scratch.take<float>(loops.key_stride())) {
    if (!zeros_) return;
    std::fill_n(zeros_, loops.key_stride(), 0.0F);
    std::fill_n(ones_, kRowStep, 1.0F);
  }

  const float* of(const ChunkLoops& loops, const void* g, int64_t head, const ChunkPlace& place,
                  bool reset) {
    const int64_t width = loops.key_stride();
    if (reset) {
      std::fill_n(left_, width, 0.0F);
      return left_;
    }
    sums_.read_decays(loops, g, head, place);
    if (loops.shape.scalar_decay()) {
      loops.rows.decay(1, ones_, *sums_.total(), zeros_, left_);
      std::fill_n(left_, width, float{left_[0]});
    } else {
      loops.rows.exponentials(1, width, {sums_.total(), 0}, {zeros_, 0}, {left_, 0});
    }
    return left_;
  }

 private:
  DecaySums sums_;
  float *zeros_, *ones_, *left_;
};

class OneTokenStates final : public CpuKernel {
 public:
  OneTokenStates(const KernelRequest& request, VectorUnit unit)
      : loops_(request, 0, 1, 2, unit),
        shape_(loops_.shape),
        reverse_(request.attribute<bool>("reverse")),
        initial_dtype_(request.input(3).dtype),
        parts_{shape_.values, kItemValues} {}

  int64_t items() const override { return shape_.batch * shape_.heads * parts_.parts(); }
  double nanoseconds() const override { return loops_.nanoseconds(recurrence_state_flops(shape_)); }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override {
    return loops_.text(reverse_ ? "recurrence_states token by token, reverse"
                                : "recurrence_states token by token");
  }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const size_t inputs = shape_.resets ? 5 : 4;
    Scratch scratch(static_cast<char*>(buffers[inputs + 2]) + worker_bytes() * worker);
    Workspace w(loops_, scratch);
    for (int64_t item = begin; item < end; ++item)
      walk(buffers, inputs, item / parts_.parts(), item % parts_.parts(), w);
  }

 private:
  struct Workspace {
    Remainders remainders;
    MutableRows k, v;
    float* added;

    Workspace(const ChunkLoops& loops, Scratch& scratch)
        : remainders(loops, scratch),
          k{scratch.take<float>(loops.key_stride()), loops.key_stride()},
          v{scratch.take<float>(loops.shape.values), loops.shape.values},
          added(scratch.take<float>(loops.key_stride())) {}
  };

  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, scratch);
    return scratch.bytes();
  }

  void walk(void* const* buffers, size_t inputs, int64_t stream_head, int64_t part,
            Workspace& w) const {
    const int64_t batch = stream_head / shape_.heads, head = stream_head % shape_.heads;
    const int64_t column = parts_.begin(part), columns = parts_.end(part) - column;
    const int64_t at = stream_head * loops_.state_elements() + column;
    auto* states = static_cast<float*>(buffers[inputs]);
    auto* last = static_cast<float*>(buffers[inputs + 1]) + at;
    const auto state_before = [&](int64_t step) {
      const int64_t index = reverse_ ? shape_.chunks - 1 - step : step;
      const int64_t apart = shape_.batch * shape_.heads * loops_.state_elements();
      return MutableRows{step == shape_.chunks ? last : states + index * apart + at, shape_.values};
    };
    const char* initial = static_cast<const char*>(buffers[3]) + at * dtype_bytes(initial_dtype_);
    const MutableRows first = state_before(0);
    loops_.gemm.copy_rows({initial, initial_dtype_, shape_.values, shape_.keys, columns},
                          first.data, first.stride);
    for (int64_t step = 0; step < shape_.chunks; ++step) {
      const ChunkPlace place = loops_.place(batch, reverse_ ? shape_.chunks - 1 - step : step);
      const bool reset = is_reset(shape_.resets ? buffers[4] : nullptr, shape_, place);
      const float* left = w.remainders.of(loops_, buffers[2], head, place, reset);
      const float* k = key(buffers[0], head, place, reset, left, w);
      const Rows v =
          loops_.read(buffers[1], loops_.dtype, shape_.heads, head, shape_.values, place, w.v);
      loops_.rows.decay_and_add(shape_.keys, columns, state_before(step), left, k, v.data + column,
                                state_before(step + 1));
    }
  }

  // What each key's row gets of the value. Going back, that is what the token has read of it.
  const float* key(const void* k, int64_t head, const ChunkPlace& place, bool reset,
                   const float* left, Workspace& w) const {
    if (reverse_ && reset) {
      std::fill_n(w.added, loops_.key_stride(), 0.0F);
      return w.added;
    }
    const int64_t group = head / loops_.shared_heads();
    const Rows given = loops_.read(k, loops_.dtype, shape_.groups, group, shape_.keys, place, w.k);
    if (!reverse_ || !shape_.inclusive) return given.data;
    loops_.rows.multiply(1, loops_.key_stride(), given, {left, 0}, {w.added, 0});
    return w.added;
  }

  ChunkLoops loops_;
  const RecurrenceShape& shape_;
  bool reverse_;
  DType initial_dtype_;
  Blocks parts_;
};

class OneTokenOutputs final : public CpuKernel {
 public:
  OneTokenOutputs(const KernelRequest& request, VectorUnit unit)
      : loops_(request, 1, 2, 3, unit),
        gemm_(MatmulUnits{.vector_unit = unit}),
        shape_(loops_.shape),
        states_(shape_.bonus() ? 5 : 4),
        bonus_dtype_(shape_.bonus() ? request.input(4).dtype : DType::f32),
        states_dtype_(request.input(states_).dtype) {}

  int64_t items() const override { return shape_.batch * shape_.groups * shape_.chunks; }
  double nanoseconds() const override { return loops_.nanoseconds(recurrence_state_flops(shape_)); }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override {
    return loops_.text("recurrence_outputs token by token");
  }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[output() + 1]) + worker_bytes() * worker);
    Workspace w(loops_, scratch);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % shape_.groups;
      const ChunkPlace place = loops_.place(item / (shape_.groups * shape_.chunks),
                                            item / shape_.groups % shape_.chunks);
      const Rows r =
          loops_.read(buffers[0], loops_.dtype, shape_.groups, group, shape_.keys, place, w.r);
      const Rows k =
          loops_.read(buffers[1], loops_.dtype, shape_.groups, group, shape_.keys, place, w.k);
      for (int64_t i = 0; i < loops_.shared_heads(); ++i)
        of_head(buffers, group * loops_.shared_heads() + i, place, r, k, w);
    }
  }

 private:
  struct Workspace {
    Remainders remainders;
    MutableRows r, k, v, y, readers;
    float *u, *state;

    Workspace(const ChunkLoops& loops, Scratch& scratch)
        : remainders(loops, scratch),
          r{scratch.take<float>(loops.key_stride()), loops.key_stride()},
          k{scratch.take<float>(loops.key_stride()), loops.key_stride()},
          v{scratch.take<float>(loops.shape.values), loops.shape.values},
          y{scratch.take<float>(loops.shape.values), loops.shape.values},
          readers{scratch.take<float>(loops.key_stride()), loops.key_stride()},
          u(scratch.take<float>(loops.key_stride())),
          state(scratch.take<float>(loops.state_elements())) {}
  };

  size_t output() const { return states_ + (shape_.resets ? 2 : 1); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(loops_, scratch);
    return scratch.bytes();
  }

  void of_head(void* const* buffers, int64_t head, const ChunkPlace& place, Rows r, Rows k,
               Workspace& w) const {
    const Rows v =
        loops_.read(buffers[2], loops_.dtype, shape_.heads, head, shape_.values, place, w.v);
    const float own = own_weight(buffers[4], head, r, k, w);
    const bool direct = loops_.dtype == DType::f32;
    const int64_t first =
        ((place.batch * shape_.tokens + place.first) * shape_.heads + head) * shape_.values;
    const MutableRows y =
        direct ? MutableRows{static_cast<float*>(buffers[output()]) + first, 0} : w.y;
    loops_.rows.scale(1, shape_.values, v, &own, y);
    const bool reset = is_reset(shape_.resets ? buffers[states_ + 1] : nullptr, shape_, place);
    if (!reset) {
      const float* state =
          loops_.numbers(buffers[states_], states_dtype_, loops_.state_at(place, head),
                         loops_.state_elements(), w.state);
      const Rows reader = readers(buffers[3], head, place, r, w);
      gemm_.multiply(1, shape_.values, shape_.keys, {reader.data, 0, 1}, {state, 1, shape_.values},
                     y, true);
    }
    if (!direct)
      loops_.write(y, buffers[output()], loops_.dtype, shape_.heads, head, shape_.values, place);
  }

  // What the token reads of its own value.
  float own_weight(const void* bonus, int64_t head, Rows r, Rows k, Workspace& w) const {
    float weight = 0;
    Rows reader = r;
    if (shape_.bonus()) {
      const float* u = loops_.numbers(bonus, bonus_dtype_, head * shape_.keys, shape_.keys, w.u);
      if (u != w.u) std::copy_n(u, shape_.keys, w.u);
      loops_.rows.multiply(1, loops_.key_stride(), r, {w.u, 0}, w.readers);
      reader = w.readers;
    }
    loops_.rows.dots(1, shape_.keys, reader, k, &weight);
    return weight;
  }

  // r, times what the token's own decay leaves of the state if it reads it behind that.
  Rows readers(const void* g, int64_t head, const ChunkPlace& place, Rows r, Workspace& w) const {
    if (!shape_.inclusive) return r;
    const float* left = w.remainders.of(loops_, g, head, place, false);
    loops_.rows.multiply(1, loops_.key_stride(), r, {left, 0}, w.readers);
    return w.readers;
  }

  ChunkLoops loops_;
  GemmOperands<float> gemm_;
  const RecurrenceShape& shape_;
  size_t states_;  ///< their index among the operands
  DType bonus_dtype_, states_dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_one_token_states(const KernelRequest& request, VectorUnit unit) {
  return std::make_unique<OneTokenStates>(request, unit);
}
std::unique_ptr<Kernel> make_one_token_outputs(const KernelRequest& request, VectorUnit unit) {
  return std::make_unique<OneTokenOutputs>(request, unit);
}

}  // namespace fullbore::cpu

#include "fullbore/train/recurrent_model.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

using Tensors = std::vector<Tensor>;

// bool [B] as bool [B,1,...], to go with rows of x.
Tensor beside(Tensor flags, Tensor x) {
  std::vector<int64_t> extents(static_cast<size_t>(x.rank()), 1);
  extents[0] = x.dim(0);
  return reshape(flags, Shape(extents));
}

// x [B, S T, ...] -> [S, B, T, ...].
Tensor by_segments(Tensor x, int64_t segments) {
  if (x.dim(1) % segments != 0)
    throw UsageError(
        fmt::format("{} is no whole number of {} segments", x.type().text(), segments));
  const Shape cut = x.shape().with(1, x.dim(1) / segments).inserted(1, segments);
  return swap_axes(reshape(x, cut), 0, 1);
}

Tensor mean_square(Tensor x) {
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return reduce_mean(x * x, axes);
}

// What one sequence begins with, where that is learned: [...].
Tensor first_state(Trace& trace, const RecurrentTensor& tensor) {
  return trace.parameter(kFirstStates + tensor.name, tensor.type.shape.without(0),
                         Initializer::zeros());
}

class TbpttLoss {
 public:
  TbpttLoss(Trace& trace, const RecurrentModel& model, const TbpttOptions& options)
      : trace_(trace), model_(model), options_(options) {}

  Loss operator()(std::span<const Tensor> batch) {
    FB_CHECK(batch.size() >= 2 && batch.back().dtype() == DType::boolean &&
                 batch.back().rank() == 2 && batch.back().dim(1) == options_.segments,
             "a batch without resets [B,{}]", options_.segments);
    batch_.assign(batch.begin(), batch.end() - 1);
    resets_ = batch.back();
    tensors_ = model_.states(resets_.dim(0));
    if (options_.initial == InitialState::zero && options_.segments == 1 && !options_.trainable)
      return model_.loss(trace_, batch_, {}).loss;
    const Tensors before = initial_states();
    SegmentLoss made = options_.segments == 1 ? segment(batch_, flag(0), before) : loop(before);
    keep(made);
    return made.loss;
  }

 private:
  Tensor flag(int64_t index) { return squeeze(slice(resets_, 1, index, index + 1), 1); }

  bool carries() const {
    return options_.initial == InitialState::carry ||
           (!trace_.training() && options_.initial != InitialState::zero);
  }

  Tensor sequence(const RecurrentTensor& tensor) {
    return trace_.state("streams." + tensor.name, Role::recurrent, tensor.type,
                        Initializer::zeros());
  }
  Tensor size(const RecurrentTensor& tensor) {
    return trace_.state("streams." + tensor.name + ".mean_square", Role::recurrent,
                        {tensor.type.dtype, {}}, Initializer::zeros());
  }

  // A sequence's beginning, [B,...].
  Tensor beginning(const RecurrentTensor& tensor) {
    if (!options_.trainable) return full(trace_.builder(), tensor.type, 0);
    return broadcast_to(first_state(trace_, tensor), tensor.type.shape);
  }

  // What the batch's first segments begin with, where no reset says otherwise.
  Tensors initial_states() {
    if (carries()) return each([&](const RecurrentTensor& tensor) { return sequence(tensor); });
    if (options_.initial == InitialState::zero)
      return each([&](const RecurrentTensor& tensor) { return beginning(tensor); });
    if (options_.initial == InitialState::noise)
      return each([&](const RecurrentTensor& tensor) {
        const Tensor deviation = sqrt(size(tensor)) * options_.noise;
        return random_normal(trace_.random(), tensor.type) * deviation;
      });
    const Tensor order = other_sequences();
    return each([&](const RecurrentTensor& tensor) { return gather(sequence(tensor), order); });
  }

  // i64 [B]: for each sequence another one; all are turned by the same number, drawn from 1 to B - 1.
  Tensor other_sequences() {
    const int64_t sequences = resets_.dim(0);
    const Tensor own = iota(trace_.builder(), {DType::i64, {sequences}}, 0);
    if (sequences == 1) return own;
    const Tensor draw = random_uniform(trace_.random(), {DType::f32, {}});
    const Tensor turn = cast(floor(draw * static_cast<double>(sequences - 1)), DType::i64) + 1.0;
    return remainder(own + turn, static_cast<double>(sequences));
  }

  template <class F>
  Tensors each(const F& f) {
    Tensors all;
    for (const RecurrentTensor& tensor : tensors_) all.push_back(f(tensor));
    return all;
  }

  // `states` but where a sequence begins anew.
  Tensors behind_resets(const Tensors& states, Tensor flags) {
    if (options_.initial == InitialState::noise && trace_.training()) return states;
    Tensors result;
    for (size_t i = 0; i < states.size(); ++i)
      result.push_back(options_.trainable
                           ? select(beside(flags, states[i]), beginning(tensors_[i]), states[i])
                           : select(beside(flags, states[i]), 0.0, states[i]));
    return result;
  }

  SegmentLoss segment(const Tensors& batch, Tensor flags, const Tensors& before) {
    SegmentLoss made = model_.loss(trace_, batch, behind_resets(before, flags));
    FB_CHECK(made.states.size() == tensors_.size(), "{} states, {} were announced",
             made.states.size(), tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i)
      FB_CHECK(made.states[i].type() == tensors_[i].type, "state {} is {}, {} was announced",
               tensors_[i].name, made.states[i].type().text(), tensors_[i].type.text());
    return made;
  }

  // One segment after another, all of which a gradient goes through.
  SegmentLoss loop(const Tensors& before) {
    Tensors cut;
    for (const Tensor& field : batch_) cut.push_back(by_segments(field, options_.segments));
    cut.push_back(transpose(resets_, {1, 0}));
    const Tensor zero = full(trace_.builder(), {DType::f32, {}}, 0);
    Tensors carried = before;
    carried.insert(carried.end(), {zero, zero});  // sum of losses, predictions
    bool counts = false;
    std::vector<std::string> metrics;
    const size_t states = before.size();
    const LoopResult sums = fullbore::loop(
        trace_.builder(), carried, cut, {.iterations = options_.segments},
        [&](const LoopBody& body) {
          const IterationScope iteration(trace_, body.index, options_.segments);
          const Tensors own(body.slices.begin(), body.slices.end() - 1);
          const Tensors states_before(body.carried.begin(),
                                      body.carried.begin() + static_cast<std::ptrdiff_t>(states));
          const SegmentLoss made = segment(own, body.slices.back(), states_before);
          counts = made.loss.predictions.valid();
          const Tensor weight = counts ? cast(made.loss.predictions, DType::f32)
                                       : full(body.index.builder(), {DType::f32, {}}, 1);
          IterationResults next{.carried = made.states};
          next.carried.push_back(body.carried[states] + cast(made.loss.mean, DType::f32) * weight);
          next.carried.push_back(body.carried[states + 1] + weight);
          for (const Metric& metric : made.loss.metrics) {
            const Tensor of = metric.weight.valid() ? cast(metric.weight, DType::f32) : weight;
            next.stacked.insert(next.stacked.end(), {cast(metric.mean, DType::f32) * of, of});
            metrics.push_back(metric.name);
          }
          return next;
        });
    const Tensor predictions = sums.carried[states + 1];
    SegmentLoss whole{Loss(sums.carried[states] / predictions, counts ? predictions : Tensor()),
                      {sums.carried.begin(), sums.carried.end() - 2}};
    for (size_t i = 0; i < metrics.size(); ++i) {
      const Tensor weight = reduce_sum(sums.stacked[2 * i + 1], {0});
      whole.loss.metrics.push_back(
          {metrics[i], reduce_sum(sums.stacked[2 * i], {0}) / weight, weight});
    }
    return whole;
  }

  // Leaves behind what the next step begins with.
  void keep(SegmentLoss& made) {
    if (options_.initial == InitialState::zero) return;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const bool noise = options_.initial == InitialState::noise && trace_.training();
      made.loss.carried.push_back(noise ? Carried{size(tensors_[i]), mean_square(made.states[i])}
                                        : Carried{sequence(tensors_[i]), made.states[i]});
    }
  }

  Trace& trace_;
  const RecurrentModel& model_;
  const TbpttOptions& options_;
  Tensors batch_;
  Tensor resets_;
  std::vector<RecurrentTensor> tensors_;
};

}  // namespace

InitialState initial_state_mode(const std::string& name) {
  if (name == "zero") return InitialState::zero;
  if (name == "carry" || name == "carry-k") return InitialState::carry;
  if (name == "noise") return InitialState::noise;
  if (name == "shuffled") return InitialState::shuffled;
  throw UsageError(
      fmt::format("no initial state '{}'; zero, carry, carry-k, noise and shuffled are", name));
}

LossFunction tbptt_loss(RecurrentModel model, const TbpttOptions& options) {
  return [model = std::move(model), options](Trace& trace, std::span<const Tensor> batch) {
    return TbpttLoss(trace, model, options)(batch);
  };
}

DecodeFunction recurrent_decode(RecurrentModel model, bool trainable) {
  return
      [model = std::move(model), trainable](Trace& trace, Tensor tokens, Tensor, Tensor, int64_t) {
        std::vector<Tensor> states;
        for (const RecurrentTensor& tensor : model.states(tokens.dim(0))) {
          states.push_back(trace.state(kGeneratedStates + tensor.name, Role::recurrent, tensor.type,
                                       Initializer::zeros()));
          if (trainable) first_state(trace, tensor);  // for begin_sequences() to find
        }
        const SegmentLogits made = model.logits(trace, tokens, states);
        FB_CHECK(made.states.size() == states.size(), "{} states, {} were announced",
                 made.states.size(), states.size());
        for (size_t i = 0; i < states.size(); ++i) trace.update(states[i], made.states[i]);
        return made.logits;
      };
}

}  // namespace fullbore

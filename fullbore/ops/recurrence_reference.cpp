#include <algorithm>
#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/recurrence.h"

/// Token by token, by the definition. Beside each result goes the magnitude that a kernel's rounding may
/// multiply, in units of the epsilon that it computes in. Kernels take exponentials of differences of
/// sums of log-decays: the sums of a chunk of C tokens are off by C eps times the sum of magnitudes, so
/// are their differences, and an error of an exponent is a relative error of its power. What is then
/// summed is off by the number of terms times the sum of their magnitudes (Higham 2002, section 3.1).
namespace fullbore {
namespace {

// Roundings of what is done once to each element: an exponential, products with it.
constexpr double kFew = 16;

size_t place(int64_t i) { return static_cast<size_t>(i); }

/// A number and the sum of the magnitudes of the terms that made it.
struct Sum {
  double value = 0;
  double size = 0;

  void decay(double factor) {
    value *= factor;
    size *= factor;
  }
  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};
Sum product(const Sum& a, double b) { return {a.value * b, a.size * std::abs(b)}; }
Sum product(const Sum& a, const Sum& b) { return {a.value * b.value, a.size * b.size}; }
void accumulate(Sum& sum, const Sum& term) {
  sum.value += term.value;
  sum.size += term.size;
}
using Matrix = std::vector<Sum>;  // [K,V]

/// One call's operands: those of all ops, null where an op has no such.
struct Call {
  const Literal *r, *k, *v, *g;
  const Literal* u = nullptr;
  const Literal* dy = nullptr;
  const Literal* resets = nullptr;
  RecurrenceShape shape;

  Call(const ReferenceCall& call, const Literal* r_operand, size_t k_index, size_t g_index)
      : r(r_operand),
        k(call.inputs[k_index]),
        v(call.inputs[k_index + 1]),
        g(call.inputs[g_index]),
        resets(call.attributes.get<bool>("resets") ? call.inputs.back() : nullptr),
        shape(k->type(), v->type(), g->type(), call.attributes) {}
};

/// One head of one stream.
class Head {
 public:
  Head(const Call& call, int64_t batch, int64_t head)
      : call_(call), shape_(call.shape), batch_(batch), head_(head) {}

  int64_t keys() const { return shape_.keys; }
  int64_t values() const { return shape_.values; }
  size_t key_at(int64_t t, int64_t i) const {
    const int64_t group = head_ / (shape_.heads / shape_.groups);
    return place(((batch_ * shape_.tokens + t) * shape_.groups + group) * keys() + i);
  }
  size_t value_at(int64_t t, int64_t j) const {
    return place(((batch_ * shape_.tokens + t) * shape_.heads + head_) * values() + j);
  }
  size_t decay_at(int64_t t, int64_t i) const {
    const int64_t at = (batch_ * shape_.tokens + t) * shape_.heads + head_;
    return place(at * shape_.decays + (shape_.scalar_decay() ? 0 : i));
  }
  size_t state_at(int64_t i, int64_t j) const {
    return place(((batch_ * shape_.heads + head_) * keys() + i) * values() + j);
  }
  size_t states_at(int64_t chunk, int64_t i, int64_t j) const {
    return place(chunk * shape_.batch * shape_.heads * keys() * values()) + state_at(i, j);
  }
  size_t bonus_at(int64_t chunk, int64_t i) const {
    return place(((chunk * shape_.batch + batch_) * shape_.heads + head_) * keys() + i);
  }

  double r(int64_t t, int64_t i) const { return call_.r->reals()[key_at(t, i)]; }
  double k(int64_t t, int64_t i) const { return call_.k->reals()[key_at(t, i)]; }
  double v(int64_t t, int64_t j) const { return call_.v->reals()[value_at(t, j)]; }
  double dy(int64_t t, int64_t j) const { return call_.dy->reals()[value_at(t, j)]; }
  double u(int64_t i) const { return call_.u->reals()[place(head_ * keys() + i)]; }
  double given_decay(int64_t t, int64_t i) const { return call_.g->reals()[decay_at(t, i)]; }
  double log_decay(int64_t t, int64_t i) const {
    return std::clamp(given_decay(t, i), kLeastLogDecay, 0.0);
  }
  bool reset(int64_t t) const {
    return call_.resets && call_.resets->integers()[place(batch_ * shape_.tokens + t)] != 0;
  }

  Matrix state(const Literal& from, size_t first) const {
    Matrix matrix(place(keys() * values()));
    for (size_t i = 0; i < matrix.size(); ++i) matrix[i].add(from.reals()[first + i]);
    return matrix;
  }
  void forget(Matrix& s) const { std::fill(s.begin(), s.end(), Sum{}); }
  void decay(Matrix& s, int64_t t) const {
    for (int64_t i = 0; i < keys(); ++i)
      for (int64_t j = 0; j < values(); ++j) at(s, i, j).decay(std::exp(log_decay(t, i)));
  }
  template <class X, class Y>
  void add(Matrix& s, const X& x, const Y& y) const {
    for (int64_t i = 0; i < keys(); ++i)
      for (int64_t j = 0; j < values(); ++j) at(s, i, j).add(x(i) * y(j));
  }
  void take(Matrix& s, int64_t t) const {
    add(
        s, [&](int64_t i) { return k(t, i); }, [&](int64_t j) { return v(t, j); });
  }
  /// From before token t to behind it.
  void advance(Matrix& s, int64_t t) const {
    if (reset(t)) forget(s);
    decay(s, t);
    take(s, t);
  }
  Sum& at(Matrix& s, int64_t i, int64_t j) const { return s[place(i * values() + j)]; }
  const Sum& at(const Matrix& s, int64_t i, int64_t j) const { return s[place(i * values() + j)]; }

  /// Of what decays along key i of a chunk, in epsilons.
  double slack(int64_t chunk, int64_t i) const {
    double sum = 0;
    const int64_t first = chunk * shape_.chunk;
    for (int64_t t = first; t < first + shape_.chunk_tokens(chunk); ++t)
      sum += std::abs(log_decay(t, i));
    const auto tokens = static_cast<double>(shape_.chunk);
    return (2 * tokens + 4) * sum + tokens + kFew;
  }

  const Call& call() const { return call_; }
  const RecurrenceShape& shape() const { return shape_; }

 private:
  const Call& call_;
  const RecurrenceShape& shape_;
  int64_t batch_, head_;
};

template <class Visit>
void for_each_head(const Call& call, const Visit& visit) {
  for (int64_t batch = 0; batch < call.shape.batch; ++batch)
    for (int64_t head = 0; head < call.shape.heads; ++head) visit(Head(call, batch, head));
}

void allocate_magnitudes(ReferenceCall& call) {
  for (const Literal& output : call.outputs)
    call.magnitudes.emplace_back(place(output.elements()), 0.0);
}

void put(ReferenceCall& call, size_t output, size_t at, const Sum& x, double slack) {
  call.outputs[output].reals()[at] += x.value;
  call.magnitudes[output][at] += slack * x.size;
}

// What token t reads of the state that it sees.
void read(const Head& head, const Matrix& seen, int64_t chunk, int64_t t, ReferenceCall& call) {
  const auto terms = static_cast<double>(head.keys());
  for (int64_t i = 0; i < head.keys(); ++i)
    for (int64_t j = 0; j < head.values(); ++j) {
      const double slack = head.slack(chunk, i) + terms;
      put(call, 0, head.value_at(t, j), product(head.at(seen, i, j), head.r(t, i)), slack);
      if (!head.shape().bonus()) continue;
      Sum bonus;
      bonus.add(head.r(t, i) * head.u(i) * head.k(t, i) * head.v(t, j));
      put(call, 0, head.value_at(t, j), bonus, slack);
    }
}

void read_tokens(const Head& head, Matrix& state, int64_t chunk, ReferenceCall& call) {
  const int64_t first = chunk * head.shape().chunk;
  for (int64_t t = first; t < first + head.shape().chunk_tokens(chunk); ++t) {
    if (head.reset(t)) head.forget(state);
    if (head.shape().bonus()) read(head, state, chunk, t, call);
    head.advance(state, t);
    if (!head.shape().bonus()) read(head, state, chunk, t, call);
  }
}

}  // namespace

void linear_recurrence_reference(ReferenceCall& call) {
  Call operands(call, call.inputs[0], 1, 3);
  if (operands.shape.bonus()) operands.u = call.inputs[4];
  const Literal& initial = *call.inputs[operands.shape.bonus() ? 5 : 4];
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    Matrix state = head.state(initial, head.state_at(0, 0));
    for (int64_t chunk = 0; chunk < operands.shape.chunks; ++chunk)
      read_tokens(head, state, chunk, call);
    for (size_t i = 0; i < state.size(); ++i) put(call, 1, head.state_at(0, 0) + i, state[i], 1);
  });
}

void recurrence_outputs_reference(ReferenceCall& call) {
  Call operands(call, call.inputs[0], 1, 3);
  if (operands.shape.bonus()) operands.u = call.inputs[4];
  const Literal& states = *call.inputs[operands.shape.bonus() ? 5 : 4];
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    for (int64_t chunk = 0; chunk < operands.shape.chunks; ++chunk) {
      Matrix state = head.state(states, head.states_at(chunk, 0, 0));
      read_tokens(head, state, chunk, call);
    }
  });
}

void recurrence_states_reference(ReferenceCall& call) {
  const Call operands(call, nullptr, 0, 2);
  const RecurrenceShape& shape = operands.shape;
  const bool reverse = call.attributes.get<bool>("reverse");
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    Matrix state = head.state(*call.inputs[3], head.state_at(0, 0));
    std::vector<double> error(state.size(), 0);  // what earlier chunks left, in epsilons
    const auto put_state = [&](size_t output, size_t first) {
      for (size_t i = 0; i < state.size(); ++i) {
        call.outputs[output].reals()[first + i] = state[i].value;
        call.magnitudes[output][first + i] = error[i];
      }
    };
    for (int64_t step = 0; step < shape.chunks; ++step) {
      const int64_t chunk = reverse ? shape.chunks - 1 - step : step;
      put_state(0, head.states_at(chunk, 0, 0));
      const int64_t first = chunk * shape.chunk, tokens = shape.chunk_tokens(chunk);
      for (int64_t i = 0; i < tokens; ++i) {
        const int64_t t = reverse ? first + tokens - 1 - i : first + i;
        if (!reverse) {
          head.advance(state, t);
          continue;
        }
        if (shape.inclusive) head.take(state, t);
        head.decay(state, t);
        if (!shape.inclusive) head.take(state, t);
        if (head.reset(t)) head.forget(state);
      }
      for (int64_t i = 0; i < shape.keys; ++i)
        for (int64_t j = 0; j < shape.values; ++j)
          error[place(i * shape.values + j)] += head.slack(chunk, i) * head.at(state, i, j).size;
    }
    put_state(1, head.state_at(0, 0));
  });
}

namespace {

/// The gradient of one chunk of one head.
class ChunkGradient {
 public:
  ChunkGradient(const Head& head, int64_t chunk, Matrix state, Matrix cotangent,
                ReferenceCall& call)
      : head_(head),
        chunk_(chunk),
        first_(chunk * head.shape().chunk),
        tokens_(head.shape().chunk_tokens(chunk)),
        cotangent_(std::move(cotangent)),
        call_(call),
        decay_sizes_(place(head.keys()), 0) {
    const auto through = [&](int64_t i) {
      double sum = 0;
      for (int64_t t = first_; t < first_ + tokens_; ++t) sum += head.log_decay(t, i);
      return std::exp(sum);
    };
    for (int64_t i = 0; i < head.keys(); ++i)
      for (int64_t j = 0; j < head.values(); ++j)
        decay_sizes_[place(i)] +=
            through(i) * product(head.at(state, i, j), head.at(cotangent_, i, j)).size;
    for (int64_t t = first_; t < first_ + tokens_; ++t) {
      if (head.reset(t)) head.forget(state);
      before_.push_back(state);
      head.advance(state, t);
      behind_.push_back(state);
    }
  }

  void run() {
    for (int64_t t = first_ + tokens_ - 1; t >= first_; --t) {
      const Matrix& before = before_[place(t - first_)];
      const bool inclusive = head_.shape().inclusive;
      if (inclusive) read_cotangent(t);
      of_token(t, inclusive ? behind_[place(t - first_)] : before);
      of_decay(t, before);
      if (head_.shape().bonus()) of_bonus(t);
      head_.decay(cotangent_, t);
      if (!inclusive) read_cotangent(t);
      if (head_.reset(t)) head_.forget(cotangent_);
    }
    put_decay_sizes();
  }

 private:
  double slack(int64_t i) const {
    const RecurrenceShape& shape = head_.shape();
    return head_.slack(chunk_, i) +
           static_cast<double>(shape.keys + shape.values + shape.heads / shape.groups);
  }

  void read_cotangent(int64_t t) {
    head_.add(
        cotangent_, [&](int64_t i) { return head_.r(t, i); },
        [&](int64_t j) { return head_.dy(t, j); });
  }

  void of_token(int64_t t, const Matrix& seen) {
    for (int64_t i = 0; i < head_.keys(); ++i) {
      Sum dr, dk;
      for (int64_t j = 0; j < head_.values(); ++j) {
        accumulate(dr, product(head_.at(seen, i, j), head_.dy(t, j)));
        accumulate(dk, product(head_.at(cotangent_, i, j), head_.v(t, j)));
        put(call_, 2, head_.value_at(t, j), product(head_.at(cotangent_, i, j), head_.k(t, i)),
            slack(i));
      }
      put(call_, 0, head_.key_at(t, i), dr, slack(i));
      put(call_, 1, head_.key_at(t, i), dk, slack(i));
      decay_sizes_[place(i)] +=
          dr.size * std::abs(head_.r(t, i)) + dk.size * std::abs(head_.k(t, i));
    }
  }

  bool limited(int64_t t, int64_t i) const {
    return head_.given_decay(t, i) != head_.log_decay(t, i);
  }

  void of_decay(int64_t t, const Matrix& before) {
    for (int64_t i = 0; i < head_.keys(); ++i) {
      if (limited(t, i)) continue;
      double sum = 0;
      for (int64_t j = 0; j < head_.values(); ++j)
        sum += product(head_.at(cotangent_, i, j), head_.at(before, i, j)).value;
      call_.outputs[3].reals()[head_.decay_at(t, i)] += std::exp(head_.log_decay(t, i)) * sum;
    }
  }

  // Differences of sums over the chunk.
  void put_decay_sizes() {
    for (int64_t t = first_; t < first_ + tokens_; ++t)
      for (int64_t i = 0; i < head_.keys(); ++i)
        if (!limited(t, i))
          call_.magnitudes[3][head_.decay_at(t, i)] +=
              (slack(i) + 2 * static_cast<double>(tokens_)) * decay_sizes_[place(i)];
  }

  void of_bonus(int64_t t) {
    Sum slope;
    for (int64_t j = 0; j < head_.values(); ++j) slope.add(head_.v(t, j) * head_.dy(t, j));
    for (int64_t i = 0; i < head_.keys(); ++i) {
      const double r = head_.r(t, i), k = head_.k(t, i), u = head_.u(i);
      put(call_, 0, head_.key_at(t, i), product(slope, u * k), slack(i));
      put(call_, 1, head_.key_at(t, i), product(slope, u * r), slack(i));
      put(call_, 4, head_.bonus_at(chunk_, i), product(slope, r * k), slack(i));
      for (int64_t j = 0; j < head_.values(); ++j) {
        Sum read;
        read.add(r * u * k * head_.dy(t, j));
        put(call_, 2, head_.value_at(t, j), read, slack(i));
      }
    }
  }

  const Head& head_;
  int64_t chunk_, first_, tokens_;
  Matrix cotangent_;
  ReferenceCall& call_;
  std::vector<double> decay_sizes_;
  std::vector<Matrix> before_, behind_;
};

}  // namespace

void recurrence_gradient_reference(ReferenceCall& call) {
  Call operands(call, call.inputs[0], 1, 4);
  operands.dy = call.inputs[3];
  if (operands.shape.bonus()) operands.u = call.inputs[5];
  const size_t states = operands.shape.bonus() ? 6 : 5;
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    for (int64_t chunk = 0; chunk < operands.shape.chunks; ++chunk) {
      const size_t first = head.states_at(chunk, 0, 0);
      ChunkGradient(head, chunk, head.state(*call.inputs[states], first),
                    head.state(*call.inputs[states + 1], first), call)
          .run();
    }
  });
}

}  // namespace fullbore

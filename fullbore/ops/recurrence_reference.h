#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/ops/recurrence.h"

/// Token by token, by the definition. Beside each result goes the magnitude that a kernel's rounding may
/// multiply, in units of the epsilon that it computes in. Kernels take exponentials of differences of
/// sums of log-decays: the sums of a chunk of C tokens are off by C eps times the sum of magnitudes, so
/// are their differences, and an error of an exponent is a relative error of its power. What is then
/// summed is off by the number of terms times the sum of their magnitudes (Higham 2002, section 3.1). In
/// bf16 what is multiplied is rounded before.
namespace fullbore::recurrence {

// Roundings of what is done once to each element: an exponential, products with it.
inline constexpr double kFew = 16;

// Factors of a term that are rounded to bf16: r, k and what decays of them, then their weight or the state
// that they meet.
inline constexpr double kRoundedFactors = 3;

inline size_t place(int64_t i) { return static_cast<size_t>(i); }

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
inline Sum product(const Sum& a, double b) { return {a.value * b, a.size * std::abs(b)}; }
inline Sum product(const Sum& a, const Sum& b) { return {a.value * b.value, a.size * b.size}; }
inline void accumulate(Sum& sum, const Sum& term) {
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
      : call_(call), shape_(call.shape), batch_(batch), head_(head) {
    if (call.k->dtype() == DType::bf16)
      rounded_ = kRoundedFactors * dtype_epsilon(DType::bf16) / dtype_epsilon(DType::f32) / 2;
  }

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
    return (2 * tokens + 4) * sum + tokens + kFew + rounded_;
  }

  const Call& call() const { return call_; }
  const RecurrenceShape& shape() const { return shape_; }

 private:
  const Call& call_;
  const RecurrenceShape& shape_;
  int64_t batch_, head_;
  double rounded_ = 0;
};

template <class Visit>
void for_each_head(const Call& call, const Visit& visit) {
  for (int64_t batch = 0; batch < call.shape.batch; ++batch)
    for (int64_t head = 0; head < call.shape.heads; ++head) visit(Head(call, batch, head));
}

inline void allocate_magnitudes(ReferenceCall& call) {
  for (const Literal& output : call.outputs)
    call.magnitudes.emplace_back(place(output.elements()), 0.0);
}

inline void put(ReferenceCall& call, size_t output, size_t at, const Sum& x, double slack) {
  call.outputs[output].reals()[at] += x.value;
  call.magnitudes[output][at] += slack * x.size;
}

}  // namespace fullbore::recurrence

#include "fullbore/ops/recurrence_reference.h"

namespace fullbore {

using namespace recurrence;  // NOLINT: what references of recurrences are written with

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

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/philox.h"
#include "fullbore/ops/attention.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/random.h"

/// Beside each result goes the magnitude that a kernel's rounding may multiply, in units of the
/// epsilon that it computes in. A product of n terms is off by n times the sum of their magnitudes at
/// most; an error of the score is a relative error of its weight; and in low precision the weights
/// and their cotangents are rounded before they meet the values (Higham 2002, sections 3.1 and 3.5).
namespace fullbore {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Roundings of what is done once to each element: an exponential, a factor, a difference.
constexpr double kFew = 6;

std::vector<TensorType> types_of(const ReferenceCall& call) {
  std::vector<TensorType> types;
  for (const Literal* input : call.inputs) types.push_back(input->type());
  return types;
}

struct Score {
  double value = -kInfinity;  ///< -inf for a key that the query does not see
  double slack = 0;           ///< its error, in epsilons
};

// One query against all keys.
class Query {
 public:
  Query(const ReferenceCall& call, const AttentionShape& shape, int64_t batch, int64_t head,
        int64_t query)
      : call_(call), shape_(shape), batch_(batch), head_(head), query_(query) {}

  int64_t row() const { return (batch_ * shape_.heads + head_) * shape_.queries + query_; }
  int64_t key_row(int64_t key) const {
    const int64_t group = head_ / (shape_.heads / shape_.groups);
    return (batch_ * shape_.groups + group) * shape_.keys + key;
  }
  size_t at(int64_t row, int64_t column) const {
    return static_cast<size_t>(row * shape_.width + column);
  }
  double operand(size_t input, int64_t row, int64_t column) const {
    return call_.inputs[input]->reals()[at(row, column)];
  }

  Score score(int64_t key) const {
    if (key >= shape_.visible(query_)) return {};
    double product = 0, size = 0;
    for (int64_t d = 0; d < shape_.width; ++d) {
      const double term = operand(0, row(), d) * operand(1, key_row(key), d);
      product += term;
      size += std::abs(term);
    }
    // As the constant that the decomposition multiplies by.
    const double scale = round_to_dtype(shape_.scale, compute_dtype(call_.inputs[0]->dtype()));
    Score score{product * scale,
                (static_cast<double>(shape_.width) + kFew) * size * std::abs(scale)};
    if (!shape_.masked) return score;
    const Literal& mask = *call_.inputs[shape_.mask];
    const double of_mask = mask.at(mask_index(mask.shape(), key));
    if (!mask.floating()) return of_mask != 0 ? score : Score{};
    return {score.value + of_mask, score.slack + 2 * std::abs(of_mask)};
  }

  // 1 / (1 - probability) for a weight that is kept, 0 for one that is dropped.
  double dropout_factor(int64_t key) const {
    if (shape_.dropout == 0) return 1;
    const auto scalar = [&](size_t i) {
      return static_cast<uint64_t>(call_.inputs[shape_.source + i]->integers()[0]);
    };
    const auto site = static_cast<uint64_t>(call_.attributes.get<int64_t>("site"));
    const uint64_t iteration = call_.inputs.size() > shape_.source + 2 ? scalar(2) : 0;
    const int64_t within = key % kDrawElements;
    const auto element = static_cast<uint64_t>(row() * shape_.draws_of_row() + key / kDrawElements);
    const auto bits =
        philox_halves(scalar(0), element + (iteration << 32), scalar(1) + (site << 40));
    const auto number =
        static_cast<int64_t>(bits[static_cast<size_t>(within / 4)] >> (16 * (within % 4)) & 0xffff);
    return number >= dropout_threshold(shape_.dropout)
               ? round_to_dtype(1 / (1 - shape_.dropout), compute_dtype(call_.inputs[0]->dtype()))
               : 0;
  }

  // The relative error of a weight or its cotangent that is stored in the operands' dtype.
  double storage_error() const {
    const DType dtype = call_.inputs[0]->dtype();
    return dtype_epsilon(dtype) / dtype_epsilon(compute_dtype(dtype));
  }

 private:
  int64_t mask_index(const Shape& mask, int64_t key) const {
    const int64_t b = mask[0] == 1 ? 0 : batch_;
    const int64_t h = mask[1] == 1 ? 0 : head_;
    const int64_t t = mask[2] == 1 ? 0 : query_;
    return ((b * mask[1] + h) * mask[2] + t) * mask[3] + key;
  }

  const ReferenceCall& call_;
  const AttentionShape& shape_;
  int64_t batch_, head_, query_;
};

template <class Visit>
void for_each_query(const ReferenceCall& call, const AttentionShape& shape, const Visit& visit) {
  for (int64_t batch = 0; batch < shape.batch; ++batch)
    for (int64_t head = 0; head < shape.heads; ++head)
      for (int64_t query = 0; query < shape.queries; ++query)
        visit(Query(call, shape, batch, head, query));
}

void allocate_magnitudes(ReferenceCall& call) {
  for (const Literal& output : call.outputs)
    call.magnitudes.emplace_back(static_cast<size_t>(output.elements()), 0.0);
}

void attend(const Query& query, const AttentionShape& shape, ReferenceCall& call) {
  std::vector<Score> scores;
  double largest = -kInfinity;
  for (int64_t key = 0; key < shape.keys; ++key) {
    scores.push_back(query.score(key));
    if (std::isnan(scores.back().value) || scores.back().value > largest)
      largest = scores.back().value;
  }
  if (largest == -kInfinity) return;  // no key at all: zeros
  std::vector<double> weights;
  double sum = 0;
  for (const Score& score : scores) {
    weights.push_back(std::exp(score.value - largest));
    sum += weights.back();
  }
  const auto terms = static_cast<double>(shape.keys);
  double slack_of_sum = 0;
  for (size_t key = 0; key < scores.size(); ++key) {
    if (weights[key] == 0) continue;
    scores[key].slack += std::abs(scores[key].value) + largest - scores[key].value + terms + kFew;
    slack_of_sum += weights[key] / sum * scores[key].slack;
  }
  for (int64_t key = 0; key < shape.keys; ++key) {
    const auto k = static_cast<size_t>(key);
    const double weight = weights[k] / sum * query.dropout_factor(key);
    if (weight == 0) continue;
    const double slack = scores[k].slack + slack_of_sum + terms + query.storage_error() + kFew;
    for (int64_t d = 0; d < shape.width; ++d) {
      const double term = weight * query.operand(2, query.key_row(key), d);
      call.outputs[0].reals()[query.at(query.row(), d)] += term;
      call.magnitudes[0][query.at(query.row(), d)] += slack * std::abs(term);
    }
  }
  const auto row = static_cast<size_t>(query.row());
  call.outputs[1].reals()[row] = largest + std::log(sum);
  call.magnitudes[1][row] =
      slack_of_sum + terms + kFew + 2 * (std::abs(largest) + std::abs(std::log(sum)));
}

// What one query adds to the cotangents of one key and of itself.
void pull_back(const Query& query, int64_t key, const AttentionShape& shape, ReferenceCall& call) {
  const auto row = static_cast<size_t>(query.row());
  const double log_sum_exp = call.inputs[4]->reals()[row];
  const double delta = call.inputs[5]->reals()[row];
  const Score score = query.score(key);
  if (score.value == -kInfinity) return;
  const double weight = std::exp(score.value - log_sum_exp);
  const double error = score.slack + std::abs(score.value) + std::abs(log_sum_exp) +
                       std::abs(score.value - log_sum_exp) + kFew;
  const double factor = query.dropout_factor(key);
  double slope = 0, size = 0;
  for (int64_t d = 0; d < shape.width; ++d) {
    const double term = query.operand(3, query.row(), d) * query.operand(2, query.key_row(key), d);
    slope += factor * term;
    size += std::abs(factor * term);
  }
  const auto width = static_cast<double>(shape.width);
  const auto terms = static_cast<double>(shape.rows() + shape.keys);
  const double ds = weight * (slope - delta) * shape.scale;
  const double ds_size =
      std::abs(weight * shape.scale) * (error * std::abs(slope - delta) + (width + kFew) * size +
                                        kFew * (std::abs(slope) + std::abs(delta)));
  const double dropped = weight * factor;
  const double stored = terms + query.storage_error() + kFew;
  const auto add = [&](size_t output, size_t at, double value, double magnitude) {
    call.outputs[output].reals()[at] += value;
    call.magnitudes[output][at] += magnitude;
  };
  for (int64_t d = 0; d < shape.width; ++d) {
    const size_t of_query = query.at(query.row(), d);
    const size_t of_key = query.at(query.key_row(key), d);
    const double q = query.operand(0, query.row(), d);
    const double k = query.operand(1, query.key_row(key), d);
    const double dy = query.operand(3, query.row(), d);
    add(0, of_query, ds * k, (ds_size + stored * std::abs(ds)) * std::abs(k));
    add(1, of_key, ds * q, (ds_size + stored * std::abs(ds)) * std::abs(q));
    add(2, of_key, dropped * dy, (error + stored) * std::abs(dropped * dy));
  }
}

}  // namespace

void attention_reference(ReferenceCall& call) {
  const AttentionShape shape(types_of(call), call.attributes, kAttentionOperands);
  allocate_magnitudes(call);
  for_each_query(call, shape, [&](const Query& query) { attend(query, shape, call); });
}

void attention_gradient_reference(ReferenceCall& call) {
  const AttentionShape shape(types_of(call), call.attributes, kAttentionGradientOperands);
  allocate_magnitudes(call);
  for_each_query(call, shape, [&](const Query& query) {
    for (int64_t key = 0; key < shape.keys; ++key) pull_back(query, key, shape, call);
  });
}

}  // namespace fullbore

#include <cmath>
#include <limits>

#include "fullbore/base/philox.h"
#include "fullbore/ops/attention.h"
#include "fullbore/ops/compose.h"

namespace fullbore {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The scores and weights of one query over all keys.
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
  double at(size_t operand, int64_t row, int64_t column) const {
    return call_.inputs[operand]->reals()[static_cast<size_t>(row * shape_.width + column)];
  }

  // -inf for a key that the query does not see.
  double score(int64_t key) const {
    if (shape_.causal && key > query_ + shape_.keys - shape_.queries) return -kInfinity;
    double product = 0;
    for (int64_t d = 0; d < shape_.width; ++d) product += at(0, row(), d) * at(1, key_row(key), d);
    // As the constant that the decomposition multiplies by.
    const double scaled =
        product * round_to_dtype(shape_.scale, compute_dtype(call_.inputs[0]->dtype()));
    if (!shape_.masked) return scaled;
    const Literal& mask = *call_.inputs[3];
    if (mask.floating()) return scaled + mask.at(mask_index(mask.shape(), key));
    return mask.at(mask_index(mask.shape(), key)) != 0 ? scaled : -kInfinity;
  }

  // 1 / (1 - probability) for a weight that is kept, 0 for one that is dropped.
  double dropout_factor(int64_t key) const {
    if (shape_.dropout == 0) return 1;
    const size_t first = shape_.first_random();
    const auto scalar = [&](size_t i) {
      return static_cast<uint64_t>(call_.inputs[first + i]->integers()[0]);
    };
    const auto site = static_cast<uint64_t>(call_.attributes.get<int64_t>("site"));
    const uint64_t trip = call_.inputs.size() > first + 2 ? scalar(2) : 0;
    const uint64_t element = static_cast<uint64_t>(row() * shape_.keys + key);
    const uint64_t bits = philox_bits(scalar(0), element + (trip << 32), scalar(1) + (site << 40));
    const double draw = std::ldexp(static_cast<double>(bits >> 40), -24);
    return draw >= shape_.dropout
               ? round_to_dtype(1 / (1 - shape_.dropout), compute_dtype(call_.inputs[0]->dtype()))
               : 0;
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

void attend(const Query& query, const AttentionShape& shape, Literal& y) {
  std::vector<double> weights;
  double largest = -kInfinity;
  for (int64_t key = 0; key < shape.keys; ++key) {
    weights.push_back(query.score(key));
    if (std::isnan(weights.back()) || weights.back() > largest) largest = weights.back();
  }
  if (largest == -kInfinity) return;  // no key at all: zeros
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (int64_t key = 0; key < shape.keys; ++key) {
    const double weight = weights[static_cast<size_t>(key)] / sum * query.dropout_factor(key);
    for (int64_t d = 0; d < shape.width; ++d)
      y.reals()[static_cast<size_t>(query.row() * shape.width + d)] +=
          weight * query.at(2, query.key_row(key), d);
  }
}

}  // namespace

void attention_reference(ReferenceCall& call) {
  std::vector<TensorType> types;
  for (const Literal* input : call.inputs) types.push_back(input->type());
  const AttentionShape shape(types, call.attributes);
  for (int64_t batch = 0; batch < shape.batch; ++batch)
    for (int64_t head = 0; head < shape.heads; ++head)
      for (int64_t query = 0; query < shape.queries; ++query)
        attend(Query(call, shape, batch, head, query), shape, call.outputs[0]);
}

}  // namespace fullbore

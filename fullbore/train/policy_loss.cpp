#include "fullbore/train/policy_loss.h"

#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

/// What is the same for all parts of the loss.
class PolicyLoss {
 public:
  PolicyLoss(const PolicyTokens& tokens, const PolicyLossOptions& options)
      : tokens_(tokens), options_(options), counted_(cast(tokens.counted, DType::f32)) {
    lengths_ = reduce_sum(counted_, {1});
    all_ = reduce_sum(lengths_, {0});
    set_weights();
  }

  Loss make() {
    const Tensor log_ratio = where_counted(tokens_.log_probability - stop_gradient(tokens_.old));
    const Tensor ratio = ratio_of(log_ratio);
    const Tensor advantage = expand_dims(tokens_.advantage, 1);
    const Tensor clipped = clamp(ratio, 1 - options_.clip_low, 1 + options_.clip_high);
    Tensor gain = minimum(ratio * advantage, clipped * advantage);
    Loss loss(Tensor{}, divisor_);
    if (tokens_.reference.valid()) gain = gain - penalty(loss) * tokens_.penalty;
    if (options_.entropy != 0) gain = gain + tokens_.entropy * options_.entropy;
    const Tensor divisor = select(greater(divisor_, 0.0), divisor_, 1.0);
    loss.mean = neg(reduce_sum(where_counted(gain) * weights_, {0, 1}) / divisor);

    tell(loss, "ratio", ratio);
    // Clipped is a token whose ratio has no gradient any more.
    const auto share = [&](Tensor where) { return cast(where, DType::f32); };
    tell(loss, "clipped_low",
         share(logical_and(less(ratio, 1 - options_.clip_low), less(advantage, 0.0))));
    tell(loss, "clipped_high",
         share(logical_and(greater(ratio, 1 + options_.clip_high), greater(advantage, 0.0))));
    tell(loss, "entropy", tokens_.entropy);
    loss.metrics.push_back({.name = "largest_log_ratio",
                            .mean = reduce_max(abs(stop_gradient(log_ratio)), {0, 1}),
                            .largest = true});
    return loss;
  }

 private:
  // Values of rows that end earlier may be anything, infinite too: they are taken out, not multiplied by 0.
  Tensor where_counted(Tensor x) const { return select(tokens_.counted, x, 0.0); }

  void tell(Loss& loss, const char* name, Tensor of_tokens) const {
    loss.metrics.push_back(
        {name, reduce_sum(where_counted(stop_gradient(of_tokens)), {0, 1}) / maximum(all_, 1.0),
         all_});
  }

  void set_weights() {
    using Aggregation = PolicyLossOptions::Aggregation;
    weights_ = counted_;
    const Tensor rows = reduce_sum(cast(greater(lengths_, 0.0), DType::f32), {0});
    switch (options_.aggregation) {
      case Aggregation::sequences:
        weights_ = counted_ / expand_dims(maximum(lengths_, 1.0), 1);
        divisor_ = rows;
        break;
      case Aggregation::tokens: divisor_ = all_; break;
      case Aggregation::fixed:
        FB_CHECK(options_.longest > 0, "the longest completion is not known");
        divisor_ = rows * static_cast<double>(options_.longest);
        break;
    }
  }

  Tensor ratio_of(Tensor log_ratio) const {
    if (options_.ratio == PolicyLossOptions::Ratio::token) return exp(log_ratio);
    const Tensor mean = reduce_sum(log_ratio, {1}) / maximum(lengths_, 1.0);
    return broadcast_to(expand_dims(exp(mean), 1), log_ratio.shape());
  }

  Tensor penalty(Loss& loss) const {
    const Tensor away = where_counted(tokens_.log_probability - stop_gradient(tokens_.reference));
    const Tensor k3 = expm1(neg(away)) + away;
    tell(loss, "kl", k3);
    tell(loss, "kl1", away);
    tell(loss, "kl2", away * away * 0.5);
    return k3;
  }

  const PolicyTokens& tokens_;
  const PolicyLossOptions& options_;
  Tensor counted_;  // f32 [B,N]
  Tensor lengths_;  // f32 [B]
  Tensor all_;      // f32 []
  Tensor weights_;  // f32 [B,N]
  Tensor divisor_;  // f32 []
};

}  // namespace

Loss policy_loss(const PolicyTokens& tokens, const PolicyLossOptions& options) {
  return PolicyLoss(tokens, options).make();
}

}  // namespace fullbore

#include "workloads/latentwire/answer_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fullbore::latentwire {

double Likelihood::nats() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }

void Likelihood::add(std::span<const float> logits, int32_t token) {
  const double most = *std::ranges::max_element(logits);
  const float own = logits[static_cast<size_t>(token)];
  double sum = 0;
  for (const float each : logits) sum += std::exp(each - most);
  losses.push_back(static_cast<float>(std::log(sum) + most - own));
  ranks.push_back(static_cast<int32_t>(
      std::ranges::count_if(logits, [own](float each) { return each > own; })));
}

int32_t likeliest_token(std::span<const float> logits, const Receiver& receiver,
                        const std::vector<int32_t>& answer, bool may_end) {
  std::vector<int32_t> order(logits.size()), longer = answer;
  std::iota(order.begin(), order.end(), 0);
  longer.push_back(0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  for (auto next = order.begin(); next != order.end(); ++next) {
    std::iter_swap(next, std::min_element(next, order.end(), likelier));
    longer.back() = *next;
    if (may_end || !receiver.ends(longer)) break;
  }
  return longer.back();
}

AnswerTimes AnswerTimes::operator-(const AnswerTimes& other) const {
  return {prefill - other.prefill,     decode - other.decode, judge - other.judge,
          prefilled - other.prefilled, shared - other.shared, decoded - other.decoded};
}

}  // namespace fullbore::latentwire

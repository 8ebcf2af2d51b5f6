#include "workloads/energy_flow/embedding_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fullbore::energy_flow {
namespace {

constexpr double kUnitTolerance = 1e-3;

}  // namespace

Status check_record(const EmbeddingRecord& record, const EmbeddingFacts& facts) {
  const std::vector<float>& vector = record.vector;
  if (std::ssize(vector) != facts.width)
    return Failure{fmt::format("target: {} numbers, {} were expected", vector.size(), facts.width)};
  const auto bad =
      std::ranges::find_if(vector, [](float element) { return !std::isfinite(element); });
  if (bad != vector.end())
    return Failure{fmt::format("target: element {} is {}", bad - vector.begin(), *bad)};
  double squares = 0;
  for (const float element : vector) squares += double{element} * double{element};
  const double norm = std::sqrt(squares);
  if (facts.normalized && std::abs(norm - 1) > kUnitTolerance)
    return Failure{
        fmt::format("target: its length is {:.6g}, but the file says that it is 1", norm)};
  if (norm < kLeastNorm || norm > kMostNorm)
    return Failure{fmt::format("target: its length is {:.6g}, {} to {} were expected", norm,
                               kLeastNorm, kMostNorm)};
  if (!record.has_tokens) return success();
  const auto& [ids, mask] = record.tokens;
  if (ids.size() != mask.size())
    return Failure{
        fmt::format("attention_mask: {} numbers for {} input_ids", mask.size(), ids.size())};
  if (const auto negative = std::ranges::find_if(ids, [](int32_t id) { return id < 0; });
      negative != ids.end())
    return Failure{fmt::format("input_ids: token {} is {}; 0 to {} were expected",
                               negative - ids.begin(), static_cast<uint32_t>(*negative),
                               INT32_MAX)};
  if (const auto other = std::ranges::find_if(mask, [](uint8_t each) { return each > 1; });
      other != mask.end())
    return Failure{fmt::format("attention_mask: {} at token {}; 0 or 1 was expected", *other,
                               other - mask.begin())};
  return success();
}

}  // namespace fullbore::energy_flow

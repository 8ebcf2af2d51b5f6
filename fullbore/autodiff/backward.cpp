#include "fullbore/autodiff/backward.h"

#include <fmt/format.h>

#include "fullbore/autodiff/pull_back.h"
#include "fullbore/base/error.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

std::vector<Tensor> backward(GraphBuilder& builder, std::span<const Tensor> outputs,
                             std::span<const Tensor> cotangents, std::span<const Tensor> wanted) {
  if (outputs.size() != cotangents.size())
    throw UsageError(
        fmt::format("backward: {} cotangents for {} outputs", cotangents.size(), outputs.size()));
  std::vector<Tensor> from, flowing, to;
  for (size_t i = 0; i < outputs.size(); ++i) {
    from.push_back(builder.import(outputs[i]));
    flowing.push_back(builder.import(cotangents[i]));
    if (!is_floating(from[i].dtype()) || from[i].type() != flowing[i].type())
      throw UsageError(
          fmt::format("backward: output {} is {} and its cotangent {}; both must have "
                      "one floating type",
                      i, from[i].type().text(), flowing[i].type().text()));
  }
  for (const Tensor& tensor : wanted) to.push_back(builder.import(tensor));

  std::vector<AugmentedLoop> augmented;  // of no use here: in an open graph, passes replace them
  std::vector<Tensor> results = pull_back(builder, 0, from, flowing, to, augmented);
  for (size_t i = 0; i < results.size(); ++i)
    if (!results[i].valid()) results[i] = zeros_like(to[i]);
  return results;
}

std::vector<bool> depends_on(GraphBuilder& builder, std::span<const Tensor> outputs,
                             std::span<const Tensor> wanted) {
  std::vector<Tensor> from, to;
  for (const Tensor& output : outputs) from.push_back(builder.import(output));
  for (const Tensor& tensor : wanted) to.push_back(builder.import(tensor));
  const std::vector<bool> varies = varying_values(builder.graph(), 0, to);
  std::vector<bool> result;
  for (const Tensor& output : from)
    result.push_back(varies[static_cast<size_t>(output.value().id)]);
  return result;
}

std::vector<Tensor> gradient(Tensor loss, std::span<const Tensor> wanted) {
  if (!is_floating(loss.dtype()) || loss.rank() != 0)
    throw UsageError(
        fmt::format("gradient: the loss must be a floating scalar, not {}", loss.type().text()));
  const Tensor one = full(loss.builder(), loss.type(), 1);
  return backward(loss.builder(), std::span(&loss, 1), std::span(&one, 1), wanted);
}

}  // namespace fullbore

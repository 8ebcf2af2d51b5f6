#include "fullbore/train/initial_values.h"

#include <cstring>

#include "fullbore/optim/optimizer.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

InitialValues::InitialValues(const TracedStep& step, uint64_t seed)
    : seed_(seed), initializers_(step.initializers) {
  for (const Graph::Input& input : step.graph.inputs())
    if (input.role == Role::parameter) averaged_.emplace(average_name(input.name), input.name);
}

void InitialValues::fill(const std::string& name, const TensorType& type, void* zeroed,
                         Team* team) const {
  if (name == "random.seed") {
    std::memcpy(zeroed, &seed_, sizeof(seed_));
    return;
  }
  const auto averaged = averaged_.find(name);
  const std::string& drawn = averaged == averaged_.end() ? name : averaged->second;
  const Initializer& initializer = initializers_.at(drawn);
  if (initializer.kind != Initializer::Kind::zeros)
    initialize(initializer, type, seed_, drawn, zeroed, team);
}

}  // namespace fullbore

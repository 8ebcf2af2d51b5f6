#include "fullbore/train/initial_values.h"

#include "fullbore/optim/optimizer.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

InitialValues::InitialValues(const TracedStep& step, uint64_t seed)
    : seed_(seed), initializers_(step.initializers) {
  for (const Graph::Input& input : step.graph.inputs())
    if (input.role == Role::parameter) averaged_.emplace(average_name(input.name), input.name);
}

const Initializer* InitialValues::initializer_of(const std::string& name,
                                                 std::string& drawn) const {
  const auto averaged = averaged_.find(name);
  drawn = averaged == averaged_.end() ? name : averaged->second;
  const Initializer& initializer = initializers_.at(drawn);
  return initializer.kind == Initializer::Kind::zeros ? nullptr : &initializer;
}

void InitialValues::fill(State& state, int entry) const {
  const auto& [name, role, type] = state.entries()[static_cast<size_t>(entry)];
  std::string drawn;
  const Initializer* const initializer =
      name == "random.seed" ? nullptr : initializer_of(name, drawn);
  if (name == "random.seed") {
    state.write(entry, std::as_bytes(std::span(&seed_, 1)));
  } else if (initializer && initializer->kind == Initializer::Kind::orthogonal) {
    std::vector<std::byte> values(static_cast<size_t>(type.bytes()));
    initialize(*initializer, type, seed_, drawn, values.data());
    state.write(entry, values);
  } else if (initializer) {
    const int64_t width = static_cast<int64_t>(dtype_bytes(type.dtype));
    state.produce(entry, Pieces::any_order, [&](int64_t offset, std::span<std::byte> piece) {
      const int64_t begin = offset / width;
      initialize_part(*initializer, type, seed_, drawn, begin,
                      begin + static_cast<int64_t>(piece.size()) / width, piece.data());
    });
  }
}

}  // namespace fullbore

#include "fullbore/train/initial_values.h"

#include <cstddef>
#include <span>
#include <vector>

#include "fullbore/trace/trace.h"

namespace fullbore {

void InitialValues::fill(State& state, int entry) const {
  const StateEntry& filled = state.entries()[static_cast<size_t>(entry)];
  const std::string& name = filled.name;
  const TensorType& type = filled.type;
  if (name == "random.seed") {
    state.write(entry, std::as_bytes(std::span(&seed_, 1)));
    return;
  }
  const Initializer& initializer = initializers_.at(name);
  if (initializer.kind == Initializer::Kind::zeros) return;
  if (initializer.kind == Initializer::Kind::orthogonal) {
    std::vector<std::byte> values(static_cast<size_t>(type.bytes()));
    initialize(initializer, type, seed_, name, values.data());
    state.write(entry, values);
    return;
  }
  const auto width = static_cast<int64_t>(dtype_bytes(type.dtype));
  state.produce(entry, Pieces::any_order, [&](int64_t offset, std::span<std::byte> piece) {
    const int64_t begin = offset / width;
    initialize_part(initializer, type, seed_, name, begin,
                    begin + static_cast<int64_t>(piece.size()) / width, piece.data());
  });
}

}  // namespace fullbore

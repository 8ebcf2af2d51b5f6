#include "apps/trained_state.h"

#include "fullbore/optim/optimizer.h"

namespace fullbore {

State trained_state(const OpenedCheckpoint& checkpoint, const Config& config,
                    const std::vector<StateEntry>& entries) {
  State state(entries);
  std::vector<TensorSlot> slots;
  for (size_t i = 0; i < entries.size(); ++i) {
    const StateEntry& entry = entries[i];
    if (entry.role != Role::parameter && entry.role != Role::frozen) continue;
    const bool averaged = entry.role == Role::parameter && config.train.evaluate == "ema";
    slots.push_back({averaged ? average_name(entry.name) : entry.name, entry.type,
                     state.data(static_cast<int>(i))});
  }
  restore(checkpoint.folder, slots, UnknownTensors::kIgnore).take_or_throw();
  return state;
}

}  // namespace fullbore

#include "fullbore/device/kernel_ir/loop_placement.h"

#include <algorithm>

#include "fullbore/base/check.h"

namespace fullbore::jit {
namespace {

using Kind = Instruction::Kind;

// Which loops a value changes with. Symbols change with none.
struct Dependence {
  bool outer = false;
  bool serial = false;
  bool lane = false;
  void operator|=(const Dependence& other) {
    outer |= other.outer;
    serial |= other.serial;
    lane |= other.lane;
  }
};

Dependence dependence_of(const KernelIr& kernel, const Form& form) {
  Dependence result;
  const auto outer = static_cast<int>(kernel.outer.size());
  for (int i = 0; i < kernel.loops(); ++i) {
    if (form.coefficients[static_cast<size_t>(i)] == 0) continue;
    (i < outer ? result.outer : i < kernel.lane_loop() ? result.serial : result.lane) = true;
  }
  return result;
}

Dependence dependence_of(const KernelIr& kernel, const Access& access) {
  Dependence result;
  if (!access.address.coefficients.empty()) result = dependence_of(kernel, access.address);
  for (const Predicate& predicate : access.predicates)
    result |= dependence_of(kernel, predicate.form);
  return result;
}

Scope scope_of(const KernelIr& kernel, const Dependence& dependence) {
  if (kernel.columns()) {
    if (dependence.serial) return Scope::element;
    return dependence.outer || dependence.lane ? Scope::row : Scope::kernel;
  }
  if (dependence.lane) return Scope::element;
  if (dependence.serial) return Scope::serial;
  return dependence.outer ? Scope::row : Scope::kernel;
}

bool is_inner(Scope scope) { return scope == Scope::element || scope == Scope::serial; }

// What each walk evaluates: from its reductions, and in the last from what is stored, back to what
// an earlier walk has kept.
void find_needed(const KernelIr& kernel, LoopPlacement& placement) {
  const size_t count = kernel.instructions.size();
  placement.needed.assign(static_cast<size_t>(placement.walks), std::vector<bool>(count, false));
  for (int walk = 0; walk < placement.walks; ++walk) {
    std::vector<bool>& needed = placement.needed[static_cast<size_t>(walk)];
    if (walk == placement.walks - 1)
      for (size_t s = 0; s < kernel.stores.size(); ++s)
        if (placement.in_walk[s]) needed[static_cast<size_t>(kernel.stores[s].value)] = true;
    for (size_t i = count; i-- > 0;) {
      const Instruction& instruction = kernel.instructions[i];
      const bool reduces = instruction.kind == Kind::reduce && placement.available[i] == walk + 1;
      const bool inner = is_inner(placement.scope[i]);
      const bool kept = placement.slot[i] >= 0 && placement.first_walk[i] < walk;
      if (reduces || (needed[i] && inner && !kept))
        for (int operand : instruction.operands) needed[static_cast<size_t>(operand)] = true;
      if (!inner) needed[i] = reduces;
    }
  }
}

// Loading and storing a vector costs about what a handful of operations on it does.
constexpr double kCostly = 8;
// Rows of several axes may be whole tensors: what is kept of them is to stay in the nearer caches.
constexpr int64_t kMostBytesOfRows = 128 << 10;

// Costly values that several walks need are computed in the first and kept for the others.
void keep_costly_values(const KernelIr& kernel, LoopPlacement& placement) {
  if (kernel.columns() || (!kernel.serial.empty() && slot_bytes(kernel) > kMostBytesOfRows)) return;
  for (size_t i = 0; i < kernel.instructions.size(); ++i) {
    const Instruction& instruction = kernel.instructions[i];
    if (instruction.kind != Kind::scalar || placement.scope[i] != Scope::element ||
        instruction.dtype == DType::boolean)
      continue;
    if (scalar_op_flops(instruction.op) < kCostly && !is_philox(instruction.op)) continue;
    int walks = 0;
    for (int walk = placement.walks; walk-- > 0;)
      if (placement.needed[static_cast<size_t>(walk)][i]) {
        placement.first_walk[i] = walk;
        ++walks;
      }
    if (walks > 1) placement.slot[i] = placement.slots++;
  }
}

}  // namespace

LoopPlacement place_in_loops(const KernelIr& kernel, bool keeps_values) {
  LoopPlacement placement;
  const size_t count = kernel.instructions.size();
  std::vector<Dependence> dependence(count);
  placement.scope.resize(count);
  placement.available.resize(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const Instruction& instruction = kernel.instructions[i];
    Dependence& own = dependence[i];
    for (int operand : instruction.operands) {
      own |= dependence[static_cast<size_t>(operand)];
      placement.available[i] =
          std::max(placement.available[i], placement.available[static_cast<size_t>(operand)]);
    }
    if (instruction.kind == Kind::index) own |= dependence_of(kernel, instruction.form);
    if (instruction.kind == Kind::load || instruction.kind == Kind::inside)
      own |= dependence_of(kernel, instruction.access);
    if (instruction.kind == Kind::reduce) {
      placement.walks = std::max(placement.walks, placement.available[i] + 1);
      ++placement.available[i];
      own.serial = false;
      own.outer = true;  // made once per row even if its operand is the same in all
      if (!kernel.columns()) own.lane = false;
    }
    placement.scope[i] = scope_of(kernel, own);
    if (instruction.kind == Kind::scan) placement.scope[i] = Scope::element;
  }
  for (const Store& store : kernel.stores) {
    const Dependence own = dependence_of(kernel, store.access);
    const bool walk = kernel.columns() ? own.serial : own.serial || own.lane;
    placement.in_walk.push_back(walk);
    const auto value = static_cast<size_t>(store.value);
    FB_CHECK(walk || placement.scope[value] <= Scope::row, "a store of %{} outside its loop",
             store.value);
    if (walk) placement.walks = std::max(placement.walks, placement.available[value] + 1);
  }

  placement.slot.assign(count, -1);
  placement.first_walk.assign(count, -1);
  find_needed(kernel, placement);
  if (keeps_values) keep_costly_values(kernel, placement);
  if (placement.slots > 0) find_needed(kernel, placement);
  return placement;
}

}  // namespace fullbore::jit

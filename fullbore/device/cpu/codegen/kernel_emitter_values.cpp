#include <algorithm>
#include <limits>
#include <numeric>

#include "fullbore/base/check.h"
#include "fullbore/device/cpu/codegen/kernel_emitter.h"

namespace fullbore::jit {

using Kind = Instruction::Kind;

// Light bodies are repeated, so that loads overlap and reductions have several accumulators; heavy
// ones keep the processor busy by themselves.
int KernelEmitter::unroll_factor(int walk) const {
  constexpr int kOneOrderVectors =
      2;  // enough for light bodies, and not yet too many for heavy ones
  if (kernel_.one_order) return kOneOrderVectors;
  double weight = 0;
  for (size_t id = 0; id < kernel_.instructions.size(); ++id) {
    if (!placement_.needed[static_cast<size_t>(walk)][id]) continue;
    const Instruction& instruction = kernel_.instructions[id];
    if (instruction.kind == Kind::scan) return 1;  // each vector needs the one before
    const bool restored = placement_.slot[id] >= 0 && placement_.first_walk[id] < walk;
    if (instruction.kind != Kind::scalar || restored)
      weight += 0.5;
    else
      weight += is_philox(instruction.op) ? 40 : std::max(1.0, scalar_op_flops(instruction.op));
  }
  if (lanes_ == target_.vector_bytes) return 2;  // bytes: one vector already is 64 elements
  // Vectors of half the width are half as much work between a load and its store: a processor sees as far ahead as with wide
  // ones if there are twice as many in a row.
  if (target_.vector_bytes == 32) return weight <= 20 ? 4 : weight <= 60 ? 2 : 1;
  return weight <= 8 ? 4 : weight <= 20 ? 2 : 1;
}

int KernelEmitter::replicas_of(Scope scope) const {
  if (scope == Scope::element) return copies_;
  return scope == Scope::row && kernel_.columns() ? copies_ : 1;
}

llvm::Value* KernelEmitter::value(int id, int copy) const {
  const std::vector<Value>& copies = values_[static_cast<size_t>(id)];
  FB_CHECK(!copies.empty(), "%{} is used before it is made", id);
  return copies.size() == 1 ? copies[0] : copies[static_cast<size_t>(copy)];
}

void KernelEmitter::emit_instruction(size_t id) {
  std::vector<Value> copies;
  for (int copy = 0; copy < replicas_of(placement_.scope[id]); ++copy)
    copies.push_back(instruction_value(id, copy));
  values_[id] = std::move(copies);
}

// What a call or a row evaluates once, as far as the walks made so far allow.
void KernelEmitter::emit_uniform(Scope scope, int available) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id)
    if (placement_.scope[id] == scope && placement_.available[id] == available &&
        kernel_.instructions[id].kind != Kind::reduce)
      emit_instruction(id);
}

void KernelEmitter::emit_needed(Scope scope, int walk) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id)
    if (placement_.scope[id] == scope && placement_.needed[static_cast<size_t>(walk)][id]) {
      if (placement_.slot[id] >= 0 && placement_.first_walk[id] < walk) {
        restore(id);
        continue;
      }
      emit_instruction(id);
      if (placement_.slot[id] >= 0) keep(id);
    }
}

llvm::Value* KernelEmitter::instruction_value(size_t id, int copy) {
  const Instruction& instruction = kernel_.instructions[id];
  switch (instruction.kind) {
    case Kind::constant:
      return raw_ && is_low_precision(instruction.dtype)
                 ? llvm::Constant::getNullValue(register_type(instruction.dtype))
                 : scalars_.constant(instruction.dtype, instruction.value);
    case Kind::index:
      return scalars_.cast(lane_vector(instruction.form, copy), DType::i64, instruction.dtype);
    case Kind::inside: {
      Value result = inside(instruction.access.predicates, copy);
      return result != nullptr ? result
                               : llvm::Constant::getAllOnesValue(register_type(DType::boolean));
    }
    case Kind::load: return load(instruction.access, instruction.dtype, copy);
    case Kind::scan: return scan_value(id, copy);
    case Kind::scalar: {
      std::vector<Value> operands;
      for (int operand : instruction.operands) operands.push_back(value(operand, copy));
      const auto from = kernel_.instructions[static_cast<size_t>(instruction.operands[0])].dtype;
      return scalars_.emit(instruction.op, from, instruction.dtype, operands);
    }
    case Kind::reduce: break;
  }
  FB_CHECK(false, "a reduction is no value of its own walk");
}

llvm::Value* KernelEmitter::accumulator(size_t id, int copy) {
  std::vector<Value>& slots = accumulators_[id];
  while (static_cast<int>(slots.size()) <= copy)
    slots.push_back(entry_alloca(scalars_.vector_type(kernel_.instructions[id].dtype)));
  return slots[static_cast<size_t>(copy)];
}

llvm::Value* KernelEmitter::identity(const Instruction& instruction) const {
  const DType dtype = instruction.dtype;
  const auto extreme = [&](bool lowest) -> llvm::Value* {
    if (is_floating(dtype))
      return llvm::ConstantFP::getInfinity(scalars_.vector_type(dtype), lowest);
    const auto bits = static_cast<unsigned>(dtype_bytes(dtype) * 8);
    if (dtype == DType::u8 || dtype == DType::boolean)
      return lowest ? llvm::Constant::getNullValue(scalars_.vector_type(dtype))
                    : llvm::Constant::getAllOnesValue(scalars_.vector_type(dtype));
    return llvm::ConstantInt::get(
        scalars_.vector_type(dtype),
        lowest ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits));
  };
  switch (instruction.op) {
    case ScalarOp::add: return scalars_.constant(dtype, 0);
    case ScalarOp::mul: return scalars_.constant(dtype, 1);
    case ScalarOp::maximum: return extreme(true);
    case ScalarOp::minimum: return extreme(false);
    default: FB_CHECK(false, "a reduction by {}", scalar_op_name(instruction.op));
  }
}

llvm::Value* KernelEmitter::combine(const Instruction& instruction, Value a, Value b) {
  const Value operands[] = {a, b};
  return scalars_.emit(instruction.op, instruction.dtype, instruction.dtype, operands);
}

void KernelEmitter::reset_accumulators(int walk) {
  // In rows the main loop and the masked one share the accumulators of the wider.
  const int copies = kernel_.columns() ? copies_ : unroll_;
  for (size_t id = 0; id < kernel_.instructions.size(); ++id) {
    const Instruction& instruction = kernel_.instructions[id];
    const bool active = placement_.needed[static_cast<size_t>(walk)][id];
    if (instruction.kind == Kind::reduce && active)
      for (int copy = 0; copy < copies; ++copy)
        b_.CreateStore(identity(instruction), accumulator(id, copy));
    if (instruction.kind == Kind::scan && active)
      for (int copy = 0; copy < copies; ++copy)
        b_.CreateStore(scalars_.constant(instruction.dtype, 0), accumulator(id, copy));
  }
}

void KernelEmitter::accumulate(int walk) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id) {
    const Instruction& instruction = kernel_.instructions[id];
    if (instruction.kind != Kind::reduce || !placement_.needed[static_cast<size_t>(walk)][id])
      continue;
    for (int copy = 0; copy < copies_; ++copy) {
      Value slot = accumulator(id, copy);
      Value old = b_.CreateLoad(scalars_.vector_type(instruction.dtype), slot);
      Value sum = combine(instruction, old, value(instruction.operands[0], copy));
      // Columns: lanes beyond the end accumulate zeros that nobody stores.
      if (mask_ != nullptr && !kernel_.columns()) sum = b_.CreateSelect(mask_, sum, old);
      b_.CreateStore(sum, slot);
    }
  }
}

// Halves are combined until one lane is left: a fixed tree, whatever the number of workers.
llvm::Value* KernelEmitter::combine_lanes(const Instruction& instruction, Value vector) {
  for (int width = lanes_ / 2; width >= 1; width /= 2) {
    std::vector<int> order(static_cast<size_t>(lanes_));
    for (int i = 0; i < lanes_; ++i) order[static_cast<size_t>(i)] = i < width ? i + width : i;
    vector = combine(instruction, vector, b_.CreateShuffleVector(vector, order));
  }
  return vector;
}

void KernelEmitter::finish_reductions(int walk) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id) {
    const Instruction& instruction = kernel_.instructions[id];
    if (instruction.kind != Kind::reduce || !placement_.needed[static_cast<size_t>(walk)][id])
      continue;
    llvm::Type* type = scalars_.vector_type(instruction.dtype);
    std::vector<Value> parts;
    const int copies = kernel_.columns() ? copies_ : unroll_;
    for (int copy = 0; copy < copies; ++copy)
      parts.push_back(b_.CreateLoad(type, accumulator(id, copy)));
    if (!kernel_.columns()) {
      for (size_t half = parts.size() / 2; half >= 1; half /= 2) {
        for (size_t i = 0; i < half; ++i)
          parts[i] = combine(instruction, parts[i], parts[i + half]);
        parts.resize(half);
      }
      Value total = kernel_.lanes_reduced ? combine_lanes(instruction, parts[0]) : parts[0];
      parts = {splat(b_.CreateExtractElement(total, uint64_t{0}))};
    }
    values_[id] = std::move(parts);
  }
}

// Columns: a running sum per lane. Rows: prefix sums inside the vector by doubling, on top of what
// came before.
llvm::Value* KernelEmitter::scan_value(size_t id, int copy) {
  const Instruction& instruction = kernel_.instructions[id];
  Value slot = accumulator(id, kernel_.columns() ? copy : 0);
  llvm::Type* type = scalars_.vector_type(instruction.dtype);
  const bool real = is_floating(instruction.dtype);
  const auto add = [&](Value a, Value b) {
    return real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
  };
  Value before = b_.CreateLoad(type, slot);
  Value x = value(instruction.operands[0], copy);
  if (kernel_.columns()) {
    Value after = add(before, x);
    b_.CreateStore(after, slot);
    return instruction.exclusive ? before : after;
  }
  Value zero = llvm::Constant::getNullValue(type);
  const auto shifted = [&](Value v, int distance) {  // lane i gets lane i - distance, or 0
    std::vector<int> order(static_cast<size_t>(lanes_));
    for (int i = 0; i < lanes_; ++i) order[static_cast<size_t>(i)] = lanes_ - distance + i;
    return b_.CreateShuffleVector(zero, v, order);
  };
  Value prefix = mask_ == nullptr ? x : b_.CreateSelect(mask_, x, zero);
  for (int distance = 1; distance < lanes_; distance *= 2)
    prefix = add(prefix, shifted(prefix, distance));
  Value inclusive = add(before, prefix);
  b_.CreateStore(splat(b_.CreateExtractElement(inclusive, static_cast<uint64_t>(lanes_ - 1))),
                 slot);
  return instruction.exclusive ? add(before, shifted(prefix, 1)) : inclusive;
}

}  // namespace fullbore::jit

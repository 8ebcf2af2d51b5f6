#include "fullbore/base/check.h"
#include "fullbore/device/cuda/codegen/ptx_emitter.h"

namespace fullbore::cuda {

using jit::Instruction;
using jit::Scope;
using Kind = Instruction::Kind;

llvm::Value* PtxEmitter::value(int id, int copy) const {
  const std::vector<Value>& copies = values_[static_cast<size_t>(id)];
  FB_CHECK(!copies.empty(), "%{} is used before it is made", id);
  return copies.size() == 1 ? copies[0] : copies[static_cast<size_t>(copy)];
}

void PtxEmitter::emit_instruction(size_t id, int copies) {
  const Instruction& instruction = kernel_.instructions[id];
  if (instruction.kind == Kind::load && neighbours_ && copies > 1 && is_wide(instruction.access)) {
    values_[id] = load_wide(instruction.access, instruction.dtype);
    return;
  }
  std::vector<Value> made;
  for (int copy = 0; copy < copies; ++copy) made.push_back(instruction_value(id, copy));
  values_[id] = std::move(made);
}

// What a kernel or a row evaluates once, as far as the walks made so far allow.
void PtxEmitter::emit_uniform(Scope scope, int available) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id)
    if (placement_.scope[id] == scope && placement_.available[id] == available &&
        kernel_.instructions[id].kind != Kind::reduce)
      emit_instruction(id, 1);
}

// What a walk evaluates at its points. A point has its serial indices from its number, so that what depends on them
// alone is not known any earlier.
void PtxEmitter::emit_needed(int walk) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id)
    if ((placement_.scope[id] == Scope::element || placement_.scope[id] == Scope::serial) &&
        placement_.needed[static_cast<size_t>(walk)][id])
      emit_instruction(id, copies_);
}

llvm::Value* PtxEmitter::instruction_value(size_t id, int copy) {
  const Instruction& instruction = kernel_.instructions[id];
  switch (instruction.kind) {
    case Kind::constant:
      return raw_ && is_low_precision(instruction.dtype)
                 ? llvm::Constant::getNullValue(register_type(instruction.dtype))
                 : scalars_.constant(instruction.dtype, instruction.value);
    case Kind::index:
      return scalars_.cast(form_value(instruction.form, copy),
                           mapping_.narrow ? DType::i32 : DType::i64, instruction.dtype);
    case Kind::inside: {
      Value result = inside(instruction.access.predicates, copy);
      return result != nullptr ? result : b_.getTrue();
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

llvm::Value* PtxEmitter::accumulator(size_t id, int copy) {
  std::vector<Value>& slots = accumulators_[id];
  while (static_cast<int>(slots.size()) <= copy)
    slots.push_back(entry_alloca(scalars_.vector_type(kernel_.instructions[id].dtype)));
  return slots[static_cast<size_t>(copy)];
}

llvm::Value* PtxEmitter::identity(const Instruction& instruction) const {
  const DType dtype = instruction.dtype;
  llvm::Type* type = scalars_.scalar_type(dtype);
  const auto extreme = [&](bool lowest) -> Value {
    if (is_floating(dtype)) return llvm::ConstantFP::getInfinity(type, lowest);
    const auto bits = type->getIntegerBitWidth();
    if (dtype == DType::u8 || dtype == DType::boolean)
      return lowest ? llvm::Constant::getNullValue(type) : llvm::Constant::getAllOnesValue(type);
    return llvm::ConstantInt::get(
        type, lowest ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits));
  };
  switch (instruction.op) {
    case ScalarOp::add: return scalars_.constant(dtype, 0);
    case ScalarOp::mul: return scalars_.constant(dtype, 1);
    case ScalarOp::maximum: return extreme(true);
    case ScalarOp::minimum: return extreme(false);
    default: FB_CHECK(false, "a reduction by {}", scalar_op_name(instruction.op));
  }
}

llvm::Value* PtxEmitter::combine(const Instruction& instruction, Value a, Value b) {
  const Value operands[] = {a, b};
  return scalars_.emit(instruction.op, instruction.dtype, instruction.dtype, operands);
}

void PtxEmitter::reset_accumulators(int walk) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id) {
    const Instruction& instruction = kernel_.instructions[id];
    if (!placement_.needed[static_cast<size_t>(walk)][id]) continue;
    if (instruction.kind == Kind::reduce)
      for (int copy = 0; copy < mapping_.copies; ++copy)
        b_.CreateStore(identity(instruction), accumulator(id, copy));
    if (instruction.kind == Kind::scan)
      b_.CreateStore(scalars_.constant(instruction.dtype, 0), accumulator(id, 0));
  }
}

void PtxEmitter::accumulate(int walk) {
  for (size_t id = 0; id < kernel_.instructions.size(); ++id) {
    const Instruction& instruction = kernel_.instructions[id];
    if (instruction.kind != Kind::reduce || !placement_.needed[static_cast<size_t>(walk)][id])
      continue;
    for (int copy = 0; copy < copies_; ++copy) {
      Value slot = accumulator(id, copy);
      Value old = b_.CreateLoad(scalars_.vector_type(instruction.dtype), slot);
      Value sum = combine(instruction, old, value(instruction.operands[0], copy));
      if (mask_ != nullptr) sum = b_.CreateSelect(mask_, sum, old);
      b_.CreateStore(sum, slot);
    }
  }
}

}  // namespace fullbore::cuda

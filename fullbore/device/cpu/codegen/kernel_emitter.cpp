#include "fullbore/device/cpu/codegen/kernel_emitter.h"

#include <algorithm>

#include "fullbore/device/kernel_ir/moves.h"

namespace fullbore::jit {
namespace {

using Kind = Instruction::Kind;

// Lanes of a vector: a register full of the widest type that is computed in, or of f32 where that must not tell.
int lane_count(const KernelIr& kernel, const CodegenTarget& target, bool raw) {
  if (kernel.one_order) return static_cast<int>(target.vector_bytes / dtype_bytes(DType::f32));
  int64_t widest = 1;
  for (const Instruction& instruction : kernel.instructions)
    widest = std::max(widest, is_low_precision(instruction.dtype) ? (raw ? 2 : 4)
                                                                  : dtype_bytes(instruction.dtype));
  return static_cast<int>(target.vector_bytes / widest);
}

}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const KernelIr& kernel,
                             const CodegenTarget& target, const std::string& name)
    : kernel_(kernel),
      target_(target),
      placement_(place_in_loops(kernel)),
      module_(module),
      b_(module.getContext()),
      lanes_(lane_count(kernel, target, moves_only(kernel))),
      scalars_(b_, lanes_, {.avx512 = target.avx512, .rounds_to_bf16 = target.rounds_to_bf16}),
      raw_(moves_only(kernel)),
      name_(name),
      has_long_predicates_(has_long_predicates(kernel)) {}

llvm::Value* KernelEmitter::parameter(int index) {
  llvm::Type* type = b_.getInt64Ty();
  return b_.CreateLoad(type, b_.CreateGEP(type, parameters_, number(index)));
}

llvm::Value* KernelEmitter::minimum(Value a, Value b) {
  return b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
}

llvm::Value* KernelEmitter::clamp(Value x, Value low, Value high) {
  return minimum(b_.CreateSelect(b_.CreateICmpSGT(x, low), x, low), high);
}

llvm::Value* KernelEmitter::entry_alloca(llvm::Type* type) {
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  return at_entry.CreateAlloca(type);
}

void KernelEmitter::emit() {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* integer = b_.getInt64Ty();
  function_ = llvm::Function::Create(
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, integer, integer}, false),
      llvm::Function::ExternalLinkage, name_, module_);
  function_->setDoesNotThrow();
  function_->addFnAttr("target-cpu", target_.cpu);
  function_->addFnAttr("target-features", target_.features);
  // LLVM prefers 256-bit vectors on some processors with AVX-512; ours are asked for explicitly.
  const std::string bits = std::to_string(target_.vector_bytes * 8);
  function_->addFnAttr("prefer-vector-width", bits);
  function_->addFnAttr("min-legal-vector-width", bits);
  entry_ = llvm::BasicBlock::Create(context, "entry", function_);
  b_.SetInsertPoint(entry_);
  values_.resize(kernel_.instructions.size());
  accumulators_.resize(kernel_.instructions.size());
  emit_prologue();
  emit_items();
  b_.CreateRetVoid();
}

// Loads everything that is the same for the whole call.
void KernelEmitter::emit_prologue() {
  parameters_ = function_->getArg(1);
  llvm::Type* pointer_type = llvm::PointerType::get(module_.getContext(), 0);
  const size_t pointers = kernel_.buffers.size() + (placement_.slots > 0 ? 1 : 0);
  for (size_t i = 0; i < pointers; ++i)
    buffers_.push_back(b_.CreateLoad(pointer_type, b_.CreateGEP(pointer_type, function_->getArg(0),
                                                                number(static_cast<int64_t>(i)))));
  auto* zeros = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(lanes_));
  zero_slot_ = new llvm::GlobalVariable(module_, zeros, true, llvm::GlobalValue::PrivateLinkage,
                                        llvm::Constant::getNullValue(zeros), "zeros");

  int next = ParameterLayout::kOuter;
  for (size_t i = 0; i < kernel_.outer.size() + kernel_.serial.size(); ++i)
    extents_.push_back(parameter(next++));
  std::vector<Value> symbols;
  for (const Symbol& symbol : kernel_.symbols) {
    Value start = b_.CreateLoad(b_.getInt64Ty(), buffers_[static_cast<size_t>(symbol.buffer)]);
    symbols.push_back(clamp(start, number(0), parameter(next++)));
  }
  for_each_form(kernel_, [&](const Form& form, const Predicate* predicate) {
    FormCursor cursor;
    cursor.offset = parameter(next++);
    cursor.coefficients.resize(form.coefficients.size());
    for (int i = 0; i < static_cast<int>(form.coefficients.size()); ++i) {
      if (is_parameter(kernel_, form, i))
        cursor.coefficients[static_cast<size_t>(i)] = parameter(next++);
      else if (form.coefficients[static_cast<size_t>(i)] != 0)
        cursor.coefficients[static_cast<size_t>(i)] = number(1);
    }
    if (predicate != nullptr) cursor.limit = parameter(next++);
    cursor.current = cursor.offset;
    for (size_t s = 0; s < symbols.size(); ++s) {
      Value coefficient = cursor.coefficients[static_cast<size_t>(kernel_.loops()) + s];
      if (coefficient != nullptr)
        cursor.current = b_.CreateAdd(cursor.current, b_.CreateMul(coefficient, symbols[s]));
    }
    form_index_[&form] = forms_.size();
    forms_.push_back(std::move(cursor));
  });
  emit_uniform(Scope::kernel, 0);
}

void KernelEmitter::advance(size_t loop, Value index) {
  for (FormCursor& cursor : forms_)
    if (cursor.coefficients[loop] != nullptr)
      cursor.current = b_.CreateAdd(cursor.current, b_.CreateMul(cursor.coefficients[loop], index));
}

// A counted loop, tested at its end. Allocas stand in for values carried between iterations.
void KernelEmitter::emit_loop(Value begin, Value end, int64_t step,
                              const std::function<void(Value)>& body) {
  llvm::LLVMContext& context = module_.getContext();
  auto* before = b_.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(context, "loop", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  std::vector<Value> saved;
  for (const FormCursor& cursor : forms_) saved.push_back(cursor.current);
  body(index);
  for (size_t i = 0; i < forms_.size(); ++i) forms_[i].current = saved[i];
  Value next = b_.CreateAdd(index, number(step));
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  b_.SetInsertPoint(after);
}

void KernelEmitter::emit_items() {
  emit_loop(function_->getArg(2), function_->getArg(3), 1, [&](Value item) { emit_item(item); });
}

// The item's rows are walked with one counter per outer loop: dividing for each row would cost more
// than a short row does.
void KernelEmitter::emit_item(Value item) {
  using Layout = ParameterLayout;
  Value blocks = parameter(Layout::kLaneBlocks);
  Value group = b_.CreateUDiv(item, blocks);
  Value block = b_.CreateSub(item, b_.CreateMul(group, blocks));
  Value per_item = parameter(Layout::kRowsPerItem);
  Value row_begin = b_.CreateMul(group, per_item);
  Value row_end = minimum(b_.CreateAdd(row_begin, per_item), parameter(Layout::kRows));
  Value lanes_per_item = parameter(Layout::kLanesPerItem);
  Value lane_begin = b_.CreateMul(block, lanes_per_item);
  Value lane_end = minimum(b_.CreateAdd(lane_begin, lanes_per_item), parameter(Layout::kLanes));

  const size_t rank = kernel_.outer.size();
  std::vector<Value> counters(rank);
  Value rest = row_begin;
  for (size_t i = rank; i-- > 0;) {
    counters[i] = entry_alloca(b_.getInt64Ty());
    Value quotient = i == 0 ? number(0) : b_.CreateUDiv(rest, extents_[i]);
    b_.CreateStore(b_.CreateSub(rest, b_.CreateMul(quotient, extents_[i])), counters[i]);
    rest = quotient;
  }
  emit_loop(row_begin, row_end, 1, [&](Value) {
    for (size_t i = 0; i < rank; ++i) advance(i, b_.CreateLoad(b_.getInt64Ty(), counters[i]));
    emit_row(lane_begin, lane_end);
    Value carry = number(1);
    for (size_t i = rank; i-- > 0;) {
      Value sum = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), counters[i]), carry);
      Value over = b_.CreateICmpEQ(sum, extents_[i]);
      b_.CreateStore(b_.CreateSelect(over, number(0), sum), counters[i]);
      carry = b_.CreateZExt(over, b_.getInt64Ty());
    }
  });
}

void KernelEmitter::emit_row(Value lane_begin, Value lane_end) {
  if (kernel_.columns())
    emit_columns(lane_begin, lane_end);
  else
    emit_row_walks(lane_begin, lane_end);
}

// Full groups of unroll_ vectors, then single masked ones. Masks are not free even where the processor has them: a
// masked load of 16-bit elements takes three times as long.
void KernelEmitter::emit_lanes(Value begin, Value end, const std::function<void(Value)>& body) {
  const int64_t step = int64_t{lanes_} * unroll_;
  Value main_end = b_.CreateAdd(begin, b_.CreateAnd(b_.CreateSub(end, begin), number(-step)));
  copies_ = unroll_;
  emit_loop(begin, main_end, step, body);
  copies_ = 1;
  emit_loop(main_end, end, lanes_, [&](Value lane) {
    Value left = minimum(b_.CreateSub(end, lane), number(lanes_));
    mask_ = b_.CreateICmpULT(iota(), splat(b_.CreateTrunc(left, b_.getInt32Ty())));
    body(lane);
    mask_ = nullptr;
  });
}

void KernelEmitter::emit_serial(size_t depth, const std::function<void()>& body) {
  if (depth == kernel_.serial.size()) {
    body();
    return;
  }
  const size_t loop = kernel_.outer.size() + depth;
  Value before = serial_;
  emit_loop(number(0), extents_[loop], 1, [&](Value index) {
    advance(loop, index);
    serial_ = before == nullptr ? index : b_.CreateAdd(b_.CreateMul(before, extents_[loop]), index);
    emit_serial(depth + 1, body);
  });
  serial_ = before;
}

// Rows: walk after walk over serial loops and lanes; results of reductions are equal in all lanes.
void KernelEmitter::emit_row_walks(Value lane_begin, Value lane_end) {
  emit_uniform(Scope::row, 0);
  for (int walk = 0; walk < placement_.walks; ++walk) {
    unroll_ = unroll_factor(walk);
    reset_accumulators(walk);
    emit_serial(0, [&] {
      emit_needed(Scope::serial, walk);
      emit_lanes(lane_begin, lane_end, [&](Value lane) {
        advance(static_cast<size_t>(kernel_.lane_loop()), lane);
        lane_ = lane;
        emit_element(walk);
      });
    });
    finish_reductions(walk);
    emit_uniform(Scope::row, walk + 1);
  }
  for (size_t s = 0; s < kernel_.stores.size(); ++s)
    if (!placement_.in_walk[s]) store(kernel_.stores[s], 0, false);
}

void KernelEmitter::emit_columns(Value lane_begin, Value lane_end) {
  for (int walk = 0; walk < placement_.walks; ++walk)
    unroll_ = walk == 0 ? unroll_factor(walk) : std::min(unroll_, unroll_factor(walk));
  emit_lanes(lane_begin, lane_end, [&](Value lane) { emit_column_group(lane); });
}

// A group of lanes, each with accumulators of its own: walk after walk over the serial loops.
void KernelEmitter::emit_column_group(Value lane) {
  advance(static_cast<size_t>(kernel_.lane_loop()), lane);
  emit_uniform(Scope::row, 0);
  for (int walk = 0; walk < placement_.walks; ++walk) {
    reset_accumulators(walk);
    emit_serial(0, [&] { emit_element(walk); });
    finish_reductions(walk);
    emit_uniform(Scope::row, walk + 1);
  }
  for (size_t s = 0; s < kernel_.stores.size(); ++s)
    if (!placement_.in_walk[s])
      for (int copy = 0; copy < copies_; ++copy) store(kernel_.stores[s], copy, false);
}

void KernelEmitter::emit_element(int walk) {
  emit_needed(Scope::element, walk);
  accumulate(walk);
  if (walk != placement_.walks - 1) return;
  for (size_t s = 0; s < kernel_.stores.size(); ++s)
    if (placement_.in_walk[s])
      for (int copy = 0; copy < copies_; ++copy) store(kernel_.stores[s], copy, true);
}

}  // namespace fullbore::jit

#include "fullbore/device/cuda/codegen/ptx_emitter.h"

#include "fullbore/device/kernel_ir/moves.h"

namespace fullbore::cuda {

using jit::Form;
using jit::Instruction;
using jit::Predicate;
using jit::Scope;
using Layout = jit::ParameterLayout;

namespace {

constexpr unsigned kGlobal = 1;  // address space of NVPTX

llvm::Type* index_type(llvm::LLVMContext& context, const ThreadMapping& mapping) {
  return llvm::IntegerType::get(context, mapping.narrow ? 32 : 64);
}

// bfloat has conversions in LLVM's NVPTX since 18; before, bits are rounded by integers.
constexpr jit::EmitterFeatures kFeatures = {.has_bf16 = LLVM_VERSION_MAJOR >= 18};

}  // namespace

PtxEmitter::PtxEmitter(llvm::Module& module, const jit::KernelIr& kernel,
                       const jit::LoopPlacement& placement, const ThreadMapping& mapping,
                       std::string name, bool combines)
    : kernel_(kernel),
      placement_(placement),
      mapping_(mapping),
      module_(module),
      b_(module.getContext()),
      scalars_(b_, 1, kFeatures),
      index_type_(index_type(module.getContext(), mapping)),
      raw_(jit::moves_only(kernel)),
      combines_(combines),
      name_(std::move(name)) {}

llvm::Value* PtxEmitter::read_register(llvm::Intrinsic::ID id) const {
  return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>(), {});
}

llvm::Value* PtxEmitter::special(llvm::Intrinsic::ID id) const {
  return b_.CreateZExt(read_register(id), index_type_);
}

llvm::Value* PtxEmitter::minimum(Value a, Value b) const {
  return b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
}

llvm::Value* PtxEmitter::entry_alloca(llvm::Type* type) {
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  return at_entry.CreateAlloca(type);
}

void PtxEmitter::emit() {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, kGlobal);
  std::vector<llvm::Type*> types(kernel_.buffers.size(), pointer);
  if (mapping_.splits) types.push_back(pointer);
  const size_t numbers = jit::parameters(kernel_, {}).size();
  types.insert(types.end(), numbers, index_type_);
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, name_, module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function_->setDoesNotThrow();
  if (mapping_.by_large_blocks) bound_threads(kMostRowThreads);
  for (llvm::Argument& argument : function_->args()) {
    const size_t index = argument.getArgNo();
    if (index < kernel_.buffers.size())
      buffers_.push_back(&argument);
    else if (index < types.size() - numbers)
      partials_ = &argument;
    else
      numbers_.push_back(&argument);
  }
  entry_ = llvm::BasicBlock::Create(context, "entry", function_);
  done_ = llvm::BasicBlock::Create(context, "done", function_);
  b_.SetInsertPoint(done_);
  b_.CreateRetVoid();
  b_.SetInsertPoint(entry_);
  values_.resize(kernel_.instructions.size());
  accumulators_.resize(kernel_.instructions.size());
  emit_prologue();
  if (combines_)
    emit_combination();
  else if (mapping_.kind == ThreadMapping::Kind::map)
    emit_map();
  else if (mapping_.kind == ThreadMapping::Kind::rows)
    emit_rows();
  else
    emit_columns();
  b_.CreateBr(done_);
}

// LLVM reads an annotation of the module, since 21 an attribute of the function.
void PtxEmitter::bound_threads(uint32_t most) {
  function_->addFnAttr("nvvm.maxntid", std::to_string(most));
  llvm::LLVMContext& context = module_.getContext();
  module_.getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(context, "maxntidx"),
                    llvm::ConstantAsMetadata::get(b_.getInt32(most))}));
}

void PtxEmitter::emit_prologue() {
  const std::vector<const jit::Access*> all = accesses(kernel_);
  for (size_t i = 0; i < all.size(); ++i) aligned_[all[i]] = mapping_.aligned[i];
  if (mapping_.wide) {
    constexpr uint64_t kAlignment = 16;
    Value bits = b_.getInt64(0);
    for (Value buffer : buffers_)
      bits = b_.CreateOr(bits, b_.CreatePtrToInt(buffer, b_.getInt64Ty()));
    aligned_buffers_ = b_.CreateICmpEQ(b_.CreateAnd(bits, kAlignment - 1), b_.getInt64(0));
  }
  int next = Layout::kOuter;
  for (size_t i = 0; i < kernel_.outer.size() + kernel_.serial.size(); ++i)
    extents_.push_back(parameter(next++));
  std::vector<Value> symbols;
  for (const jit::Symbol& symbol : kernel_.symbols) {
    Value start = b_.CreateLoad(b_.getInt64Ty(), buffers_[static_cast<size_t>(symbol.buffer)]);
    Value limit = b_.CreateSExt(parameter(next++), b_.getInt64Ty());
    start = b_.CreateSelect(b_.CreateICmpSLT(start, b_.getInt64(0)), b_.getInt64(0), start);
    symbols.push_back(b_.CreateTrunc(minimum(start, limit), index_type_));
  }
  jit::for_each_form(kernel_, [&](const Form& form, const Predicate* predicate) {
    FormParameters made;
    made.offset = parameter(next++);
    made.coefficients.resize(form.coefficients.size());
    for (int i = 0; i < static_cast<int>(form.coefficients.size()); ++i) {
      if (jit::is_parameter(kernel_, form, i))
        made.coefficients[static_cast<size_t>(i)] = parameter(next++);
      else if (form.coefficients[static_cast<size_t>(i)] != 0)
        made.coefficients[static_cast<size_t>(i)] = number(1);
    }
    if (predicate != nullptr) made.limit = parameter(next++);
    form_index_[&form] = forms_.size();
    row_.push_back(made.offset);
    forms_.push_back(std::move(made));
  });
  for (size_t s = 0; s < symbols.size(); ++s)
    row_ = moved(row_, static_cast<size_t>(kernel_.loops()) + s, symbols[s]);
}

PtxEmitter::Point PtxEmitter::moved(const Point& point, size_t loop, Value index) const {
  Point result = point;
  for (size_t i = 0; i < forms_.size(); ++i)
    if (Value coefficient = forms_[i].coefficients[loop]; coefficient != nullptr)
      result[i] = b_.CreateAdd(result[i], b_.CreateMul(coefficient, index));
  return result;
}

// Point `index` of the serial loops and, in row kernels, of the lanes inside them.
PtxEmitter::Point PtxEmitter::at_reduced(const Point& row, Value index) const {
  Point point = row;
  const size_t outer = kernel_.outer.size();
  Value rest = index;
  if (!kernel_.columns()) {
    Value lane = rest;
    if (!kernel_.serial.empty()) {
      Value lanes = parameter(Layout::kLanes);
      rest = b_.CreateUDiv(index, lanes);
      lane = b_.CreateSub(index, b_.CreateMul(rest, lanes));
    }
    point = moved(point, static_cast<size_t>(kernel_.lane_loop()), lane);
  }
  for (size_t i = kernel_.serial.size(); i-- > 0;) {
    Value quotient = i == 0 ? nullptr : b_.CreateUDiv(rest, extents_[outer + i]);
    Value own = i == 0 ? rest : b_.CreateSub(rest, b_.CreateMul(quotient, extents_[outer + i]));
    point = moved(point, outer + i, own);
    rest = quotient;
  }
  return point;
}

void PtxEmitter::set_points(const std::function<Point(int)>& of_copy, int copies) {
  points_.clear();
  copies_ = copies;
  for (int copy = 0; copy < copies; ++copy) points_.push_back(of_copy(copy));
}

void PtxEmitter::leave_unless(Value condition) {
  auto* inside = llvm::BasicBlock::Create(module_.getContext(), "inside", function_);
  b_.CreateCondBr(condition, inside, done_);
  b_.SetInsertPoint(inside);
}

void PtxEmitter::emit_if(Value condition, const std::function<void()>& body) {
  auto* inside = llvm::BasicBlock::Create(module_.getContext(), "then", function_);
  auto* after = llvm::BasicBlock::Create(module_.getContext(), "after", function_);
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// A counted loop, tested at its end.
void PtxEmitter::emit_loop(Value begin, Value end, Value step, const Body& body) {
  llvm::LLVMContext& context = module_.getContext();
  auto* before = b_.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(context, "loop", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode* index = b_.CreatePHI(index_type_, 2);
  index->addIncoming(begin, before);
  body(index);
  Value next = b_.CreateAdd(index, step);
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  b_.SetInsertPoint(after);
}

// The forms of the row. What a kernel evaluates once is evaluated behind the test that there is a row: what it reads may
// be written in place by the last thread of all.
void PtxEmitter::enter_row(Value row) {
  Value rest = row;
  for (size_t i = kernel_.outer.size(); i-- > 0;) {
    Value quotient = i == 0 ? nullptr : b_.CreateUDiv(rest, extents_[i]);
    Value own = i == 0 ? rest : b_.CreateSub(rest, b_.CreateMul(quotient, extents_[i]));
    row_ = moved(row_, i, own);
    rest = quotient;
  }
  points_ = {row_};
  emit_uniform(Scope::kernel, 0);
}

}  // namespace fullbore::cuda

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/codegen/ptx_emitter.h"

namespace fullbore::cuda {

using jit::Access;
using jit::Predicate;

llvm::Type* PtxEmitter::storage_type(DType dtype) const {
  switch (dtype) {
    case DType::bf16: return b_.getInt16Ty();
    case DType::f16: return raw_ ? b_.getInt16Ty() : b_.getHalfTy();
    case DType::boolean: return b_.getInt8Ty();
    default: return scalars_.scalar_type(dtype);
  }
}

llvm::Type* PtxEmitter::register_type(DType dtype) const {
  return raw_ && is_low_precision(dtype) ? b_.getInt16Ty() : scalars_.scalar_type(dtype);
}

llvm::Value* PtxEmitter::to_registers(Value stored, DType dtype) {
  if (dtype == DType::boolean) return b_.CreateICmpNE(stored, b_.getInt8(0));
  if (raw_ || !is_low_precision(dtype)) return stored;
  return dtype == DType::bf16 ? scalars_.bf16_bits_to_f32(stored)
                              : b_.CreateFPExt(stored, b_.getFloatTy());
}

llvm::Value* PtxEmitter::to_storage(Value value, DType dtype) {
  if (dtype == DType::boolean) return b_.CreateZExt(value, b_.getInt8Ty());
  if (raw_ || !is_low_precision(dtype)) return value;
  return dtype == DType::bf16 ? scalars_.f32_to_bf16_bits(value)
                              : b_.CreateFPTrunc(value, b_.getHalfTy());
}

llvm::Value* PtxEmitter::inside(const std::vector<Predicate>& predicates, int copy) {
  Value result = nullptr;
  for (const Predicate& predicate : predicates) {
    Value index = form_value(predicate.form, copy);
    // Negative ones are large as unsigned numbers.
    Value holds = b_.CreateICmpULT(index, forms_[form_of(predicate.form)].limit);
    if (predicate.divisor != 1)
      holds = b_.CreateAnd(
          holds, b_.CreateICmpEQ(b_.CreateURem(index, number(predicate.divisor)), number(0)));
    result = result == nullptr ? holds : b_.CreateAnd(result, holds);
  }
  return result;
}

llvm::Value* PtxEmitter::element_pointer(const Access& access, int copy) {
  const auto buffer = static_cast<size_t>(access.buffer);
  Value index = form_value(access.address, copy);
  if (access.divisor != 1) index = b_.CreateSDiv(index, number(access.divisor));
  return b_.CreateGEP(storage_type(kernel_.buffers[buffer].dtype), buffers_[buffer],
                      b_.CreateSExt(index, b_.getInt64Ty()));
}

bool PtxEmitter::is_wide(const Access& access) const { return aligned_.at(&access); }

// `loads` where the condition holds, else zero. Nothing is read where it does not.
llvm::Value* PtxEmitter::loaded_if(Value condition, const std::function<Value()>& loads) {
  if (condition == nullptr) return loads();
  auto* before = b_.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(module_.getContext(), "load", function_);
  auto* after = llvm::BasicBlock::Create(module_.getContext(), "loaded", function_);
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  Value made = loads();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(made->getType(), 2);
  result->addIncoming(llvm::Constant::getNullValue(made->getType()), before);
  result->addIncoming(made, inside);
  return result;
}

llvm::Value* PtxEmitter::load(const Access& access, DType dtype, int copy) {
  const DType stored = kernel_.buffers[static_cast<size_t>(access.buffer)].dtype;
  const auto align = llvm::Align(static_cast<uint64_t>(dtype_bytes(stored)));
  Value condition = inside(access.predicates, copy);
  if (mask_ != nullptr) condition = condition == nullptr ? mask_ : b_.CreateAnd(mask_, condition);
  return to_registers(loaded_if(condition,
                                [&] {
                                  return b_.CreateAlignedLoad(storage_type(stored),
                                                              element_pointer(access, copy), align);
                                }),
                      dtype);
}

namespace {

// The neighbours' bytes as words of a register.
llvm::Type* words_of(llvm::IRBuilder<>& b, int64_t element_bytes, int copies) {
  const auto bytes = static_cast<unsigned>(element_bytes * copies);
  if (element_bytes == 8) return llvm::FixedVectorType::get(b.getInt64Ty(), bytes / 8);
  if (bytes < 4) return b.getInt16Ty();
  return bytes == 4 ? static_cast<llvm::Type*>(b.getInt32Ty())
                    : llvm::FixedVectorType::get(b.getInt32Ty(), bytes / 4);
}

llvm::Align alignment_of(int64_t element_bytes, int copies) {
  return llvm::Align(static_cast<uint64_t>(std::min<int64_t>(16, element_bytes * copies)));
}

}  // namespace

std::vector<llvm::Value*> PtxEmitter::load_wide(const Access& access, DType dtype) {
  const DType stored = kernel_.buffers[static_cast<size_t>(access.buffer)].dtype;
  const int64_t bytes = dtype_bytes(stored);
  Value words = loaded_if(inside(access.predicates, 0), [&] {
    return b_.CreateAlignedLoad(words_of(b_, bytes, copies_), element_pointer(access, 0),
                                alignment_of(bytes, copies_));
  });
  Value elements = b_.CreateBitCast(
      words, llvm::FixedVectorType::get(storage_type(stored), static_cast<unsigned>(copies_)));
  std::vector<Value> values;
  for (int copy = 0; copy < copies_; ++copy)
    values.push_back(
        to_registers(b_.CreateExtractElement(elements, static_cast<uint64_t>(copy)), dtype));
  return values;
}

void PtxEmitter::store(const jit::Store& store, int copy) {
  FB_CHECK(store.access.predicates.empty() && store.access.divisor == 1);
  const DType dtype = kernel_.buffers[static_cast<size_t>(store.access.buffer)].dtype;
  b_.CreateAlignedStore(to_storage(value(store.value, copy), dtype),
                        element_pointer(store.access, copy),
                        llvm::Align(static_cast<uint64_t>(dtype_bytes(dtype))));
}

// Of all points that are being evaluated.
void PtxEmitter::store_all(const jit::Store& each) {
  if (mask_ != nullptr) {
    emit_if(mask_, [&] { store(each, 0); });
    return;
  }
  if (!neighbours_ || !is_wide(each.access)) {
    for (int copy = 0; copy < copies_; ++copy) store(each, copy);
    return;
  }
  FB_CHECK(each.access.predicates.empty());
  const DType dtype = kernel_.buffers[static_cast<size_t>(each.access.buffer)].dtype;
  llvm::Type* type =
      llvm::FixedVectorType::get(storage_type(dtype), static_cast<unsigned>(copies_));
  Value elements = llvm::PoisonValue::get(type);
  for (int copy = 0; copy < copies_; ++copy)
    elements = b_.CreateInsertElement(elements, to_storage(value(each.value, copy), dtype),
                                      static_cast<uint64_t>(copy));
  const int64_t bytes = dtype_bytes(dtype);
  b_.CreateAlignedStore(b_.CreateBitCast(elements, words_of(b_, bytes, copies_)),
                        element_pointer(each.access, 0), alignment_of(bytes, copies_));
}

}  // namespace fullbore::cuda

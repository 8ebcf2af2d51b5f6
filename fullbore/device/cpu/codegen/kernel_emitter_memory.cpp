#include "fullbore/base/check.h"
#include "fullbore/device/cpu/codegen/kernel_emitter.h"

namespace fullbore::jit {

llvm::Value* KernelEmitter::splat(Value scalar) const {
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), scalar);
}

llvm::Value* KernelEmitter::iota() const {
  std::vector<uint32_t> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(static_cast<uint32_t>(i));
  return llvm::ConstantDataVector::get(module_.getContext(), lanes);
}

llvm::Value* KernelEmitter::merge_masks(Value a, Value b) const {
  if (a == nullptr) return b;
  return b == nullptr ? a : b_.CreateAnd(a, b);
}

llvm::Type* KernelEmitter::storage_type(DType dtype) const {
  switch (dtype) {
    case DType::bf16: return b_.getInt16Ty();
    case DType::f16: return raw_ ? b_.getInt16Ty() : b_.getHalfTy();
    case DType::boolean: return b_.getInt8Ty();
    default: return scalars_.scalar_type(dtype);
  }
}

llvm::Type* KernelEmitter::register_type(DType dtype) const {
  if (raw_ && is_low_precision(dtype))
    return llvm::FixedVectorType::get(b_.getInt16Ty(), static_cast<unsigned>(lanes_));
  return scalars_.vector_type(dtype);
}

llvm::Value* KernelEmitter::to_registers(Value stored, DType dtype) {
  if (dtype == DType::boolean)
    return b_.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
  if (raw_ || !is_low_precision(dtype)) return stored;
  return dtype == DType::bf16 ? scalars_.bf16_bits_to_f32(stored)
                              : b_.CreateFPExt(stored, scalars_.vector_type(DType::f32));
}

llvm::Value* KernelEmitter::to_storage(Value value, DType dtype) {
  llvm::Type* type = llvm::FixedVectorType::get(storage_type(dtype), static_cast<unsigned>(lanes_));
  if (dtype == DType::boolean) return b_.CreateZExt(value, type);
  if (raw_ || !is_low_precision(dtype)) return value;
  return dtype == DType::bf16 ? scalars_.f32_to_bf16_bits(value) : b_.CreateFPTrunc(value, type);
}

llvm::Value* KernelEmitter::lane_vector(const Form& form, int copy) {
  const FormCursor& s = cursor(form);
  Value step = s.coefficients[static_cast<size_t>(kernel_.lane_loop())];
  if (step == nullptr) return splat(s.current);
  std::vector<uint64_t> order;
  for (int i = 0; i < lanes_; ++i) order.push_back(static_cast<uint64_t>(copy * lanes_ + i));
  Value lanes = llvm::ConstantDataVector::get(module_.getContext(), order);
  return b_.CreateAdd(splat(s.current), b_.CreateMul(lanes, splat(step)));
}

// Of all lanes alike.
llvm::Value* KernelEmitter::holds(const Predicate& predicate) {
  const FormCursor& s = cursor(predicate.form);
  Value result = b_.CreateICmpULT(s.current, s.limit);
  if (predicate.divisor == 1) return result;
  return b_.CreateAnd(
      result, b_.CreateICmpEQ(b_.CreateURem(s.current, number(predicate.divisor)), number(0)));
}

llvm::Value* KernelEmitter::inside(const Predicate& predicate, int copy) {
  const FormCursor& s = cursor(predicate.form);
  const int64_t lane_step = kernel_.lane_coefficient(predicate.form);
  if (lane_step == 0) return splat(holds(predicate));
  if (lane_step == 1 && predicate.divisor == 1 && !has_long_predicates_) {
    // Negative ones are large as unsigned numbers.
    Value first = b_.CreateAdd(b_.CreateTrunc(s.current, b_.getInt32Ty()),
                               b_.getInt32(static_cast<uint32_t>(copy * lanes_)));
    Value limit = b_.CreateTrunc(s.limit, b_.getInt32Ty());
    return b_.CreateICmpULT(b_.CreateAdd(splat(first), iota()), splat(limit));
  }
  if (lane_step == 1 && predicate.divisor == 1) {
    // Lanes [low, high) of this vector, in 32 bits.
    Value lanes = iota();
    const auto bound = [&](Value at) {
      Value relative = b_.CreateSub(at, number(int64_t{copy} * lanes_));
      return splat(b_.CreateTrunc(clamp(relative, number(0), number(lanes_)), b_.getInt32Ty()));
    };
    Value low = bound(b_.CreateNeg(s.current));
    Value high = bound(b_.CreateSub(s.limit, s.current));
    return b_.CreateAnd(b_.CreateICmpUGE(lanes, low), b_.CreateICmpULT(lanes, high));
  }
  Value index = lane_vector(predicate.form, copy);
  Value result = b_.CreateICmpULT(index, splat(s.limit));
  if (predicate.divisor == 1) return result;
  Value rest = b_.CreateURem(index, splat(number(predicate.divisor)));
  return b_.CreateAnd(result, b_.CreateICmpEQ(rest, splat(number(0))));
}

llvm::Value* KernelEmitter::inside(const std::vector<Predicate>& predicates, int copy) {
  Value result = nullptr;
  for (const Predicate& predicate : predicates)
    result = merge_masks(result, inside(predicate, copy));
  return result;
}

llvm::Value* KernelEmitter::pointer(const Access& access, Value index) {
  const auto buffer = static_cast<size_t>(access.buffer);
  return b_.CreateGEP(storage_type(kernel_.buffers[buffer].dtype), buffers_[buffer], index);
}

// May any lane of the vector be inside? Null: who knows. Where none is, zeros of ours stand for what they would read: masked
// lanes are not read, but the line they lie in is brought from memory, and a sum of pads would bring all of its parts for
// each.
llvm::Value* KernelEmitter::reaches(const std::vector<Predicate>& predicates, int copy) {
  Value result = nullptr;
  for (const Predicate& predicate : predicates) {
    const FormCursor& s = cursor(predicate.form);
    const int64_t lane_step = kernel_.lane_coefficient(predicate.form);
    if (lane_step == 0) result = merge_masks(result, holds(predicate));
    if (lane_step != 1 || predicate.divisor != 1) continue;
    Value first = b_.CreateAdd(s.current, number(int64_t{copy} * lanes_));
    Value last = b_.CreateAdd(first, number(lanes_ - 1));
    result = merge_masks(
        result, b_.CreateAnd(b_.CreateICmpSLT(first, s.limit), b_.CreateICmpSGE(last, number(0))));
  }
  return result;
}

// Are all lanes of the vector inside? Null: who knows.
llvm::Value* KernelEmitter::covers(const std::vector<Predicate>& predicates, int copy) {
  Value result = nullptr;
  for (const Predicate& predicate : predicates) {
    const int64_t lane_step = kernel_.lane_coefficient(predicate.form);
    if (lane_step == 0) continue;
    if (lane_step != 1 || predicate.divisor != 1) return nullptr;
    const FormCursor& s = cursor(predicate.form);
    Value first = b_.CreateAdd(s.current, number(int64_t{copy} * lanes_));
    Value last = b_.CreateAdd(first, number(lanes_ - 1));
    result = merge_masks(
        result, b_.CreateAnd(b_.CreateICmpSGE(first, number(0)), b_.CreateICmpSLT(last, s.limit)));
  }
  return result;
}

// Where no instruction loads some lanes of such elements, it is done lane by lane, with a branch for each. Of rows that are
// cut and padded most vectors lie inside as a whole, or outside, where `at` is a place of zeros: `whole` says so.
llvm::Value* KernelEmitter::load_by_mask(llvm::Type* type, Value at, llvm::Align align, Value mask,
                                         Value whole) {
  Value zeros = llvm::Constant::getNullValue(type);
  const bool has_instruction =
      target_.avx512 || (target_.vector_bytes >= 32 && type->getScalarSizeInBits() >= 32);
  if (whole == nullptr || has_instruction) return b_.CreateMaskedLoad(type, at, align, mask, zeros);
  llvm::LLVMContext& context = module_.getContext();
  auto* at_once = llvm::BasicBlock::Create(context, "whole", function_);
  auto* by_lane = llvm::BasicBlock::Create(context, "some", function_);
  auto* after = llvm::BasicBlock::Create(context, "loaded", function_);
  b_.CreateCondBr(whole, at_once, by_lane);
  b_.SetInsertPoint(at_once);
  Value all = b_.CreateAlignedLoad(type, at, align);
  b_.CreateBr(after);
  b_.SetInsertPoint(by_lane);
  Value some = b_.CreateMaskedLoad(type, at, align, mask, zeros);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(type, 2);
  result->addIncoming(all, at_once);
  result->addIncoming(some, by_lane);
  return result;
}

// What the lanes reach half a page on: the processor's own prefetching stops at the end of a page, and begins anew in the
// next one only behind the first misses. Kernels of a few streams are 10 % slower without, those of erf 25 %. (Not for
// columns, whose lanes read down.)
void KernelEmitter::prefetch(Value at) {
  constexpr int64_t kPrefetchBytes = 2048;
  constexpr uint32_t kRead = 0, kAllCaches = 3, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                     {b_.CreateGEP(b_.getInt8Ty(), at, number(kPrefetchBytes)), b_.getInt32(kRead),
                      b_.getInt32(kAllCaches), b_.getInt32(kData)});
}

llvm::Value* KernelEmitter::load(const Access& access, DType dtype, int copy) {
  const FormCursor& s = cursor(access.address);
  llvm::Type* storage = storage_type(kernel_.buffers[static_cast<size_t>(access.buffer)].dtype);
  const auto align = llvm::Align(static_cast<uint64_t>(
      dtype_bytes(kernel_.buffers[static_cast<size_t>(access.buffer)].dtype)));
  const int64_t step = kernel_.lane_coefficient(access.address);
  bool uniform = step == 0;
  for (const Predicate& predicate : access.predicates)
    uniform = uniform && kernel_.lane_coefficient(predicate.form) == 0;
  Value result;
  if (uniform) {
    Value index =
        access.divisor == 1 ? s.current : b_.CreateSDiv(s.current, number(access.divisor));
    Value at = pointer(access, index);
    if (Value valid = inside(access.predicates, copy); valid != nullptr)
      at = b_.CreateSelect(b_.CreateExtractElement(valid, uint64_t{0}), at, zero_slot_);
    result = splat(b_.CreateAlignedLoad(storage, at, align));
  } else {
    if (step == 1 && access.divisor == 1) {
      Value mask = mask_;  // predicates of all lanes alike choose the address
      for (const Predicate& predicate : access.predicates)
        if (kernel_.lane_coefficient(predicate.form) != 0)
          mask = merge_masks(mask, inside(predicate, copy));
      Value at = pointer(access, b_.CreateAdd(s.current, number(int64_t{copy} * lanes_)));
      llvm::Type* type = llvm::FixedVectorType::get(storage, static_cast<unsigned>(lanes_));
      Value whole = mask_ == nullptr ? covers(access.predicates, copy) : nullptr;
      if (Value some = reaches(access.predicates, copy); some != nullptr) {
        at = b_.CreateSelect(some, at, zero_slot_);
        if (whole != nullptr) whole = b_.CreateOr(whole, b_.CreateNot(some));
      }
      if (!kernel_.columns()) prefetch(at);
      if (mask == nullptr)
        result = b_.CreateAlignedLoad(type, at, align);
      else
        result = load_by_mask(type, at, align, mask, whole);
    } else {
      result =
          load_strided(access, storage, copy, merge_masks(mask_, inside(access.predicates, copy)));
    }
  }
  return to_registers(result, dtype);
}

llvm::Value* KernelEmitter::load_strided(const Access& access, llvm::Type* storage, int copy,
                                         Value mask) {
  Value index = lane_vector(access.address, copy);
  if (access.divisor != 1) index = b_.CreateSDiv(index, splat(number(access.divisor)));
  Value pointers = pointer(access, index);
  const auto bytes = storage->getPrimitiveSizeInBits() / 8;
  llvm::Type* type = llvm::FixedVectorType::get(storage, static_cast<unsigned>(lanes_));
  if (bytes >= 4)
    return b_.CreateMaskedGather(type, pointers, llvm::Align(bytes), mask,
                                 llvm::Constant::getNullValue(type));
  // No instruction gathers small types. Lanes that are off read a zero of ours.
  if (mask != nullptr) pointers = b_.CreateSelect(mask, pointers, splat(zero_slot_));
  Value result = llvm::PoisonValue::get(type);
  for (int lane = 0; lane < lanes_; ++lane) {
    Value at = b_.CreateExtractElement(pointers, static_cast<uint64_t>(lane));
    result = b_.CreateInsertElement(result, b_.CreateAlignedLoad(storage, at, llvm::Align(bytes)),
                                    static_cast<uint64_t>(lane));
  }
  return result;
}

void KernelEmitter::store(const Store& store, int copy, bool in_walk) {
  const FormCursor& s = cursor(store.access.address);
  const auto buffer = static_cast<size_t>(store.access.buffer);
  const DType dtype = kernel_.buffers[buffer].dtype;
  const auto align = llvm::Align(static_cast<uint64_t>(dtype_bytes(dtype)));
  FB_CHECK(store.access.predicates.empty() && store.access.divisor == 1);
  Value stored = to_storage(value(store.value, copy), dtype);
  const int64_t step = kernel_.lane_coefficient(store.access.address);
  const bool vectors = in_walk || kernel_.columns();
  if (!vectors || step == 0) {
    Value one = b_.CreateExtractElement(stored, uint64_t{0});
    b_.CreateAlignedStore(one, pointer(store.access, s.current), align);
    return;
  }
  if (step != 1) {
    Value pointers = pointer(store.access, lane_vector(store.access.address, copy));
    b_.CreateMaskedScatter(stored, pointers, align, mask_);
    return;
  }
  Value at = pointer(store.access, b_.CreateAdd(s.current, number(int64_t{copy} * lanes_)));
  if (mask_ == nullptr)
    b_.CreateAlignedStore(stored, at, align);
  else
    b_.CreateMaskedStore(stored, at, align, mask_);
}

// Where the lanes being emitted of a value that walks share are kept.
llvm::Value* KernelEmitter::kept_pointer(size_t id, int copy) {
  llvm::Type* type = scalars_.scalar_type(kernel_.instructions[id].dtype);
  Value lanes = parameter(ParameterLayout::kLanes);
  Value row = b_.CreateMul(lanes, number(int64_t{8} * placement_.slot[id]));
  for (size_t i = 0; i < kernel_.serial.size(); ++i)
    row = b_.CreateMul(row, extents_[kernel_.outer.size() + i]);
  Value slot = b_.CreateGEP(b_.getInt8Ty(), buffers_.back(), row);
  Value at = b_.CreateAdd(lane_, number(int64_t{copy} * lanes_));
  if (serial_ != nullptr) at = b_.CreateAdd(at, b_.CreateMul(serial_, lanes));
  return b_.CreateGEP(type, slot, at);
}

void KernelEmitter::keep(size_t id) {
  const auto align = llvm::Align(4);
  for (int copy = 0; copy < copies_; ++copy) {
    Value kept = value(static_cast<int>(id), copy);
    if (mask_ == nullptr)
      b_.CreateAlignedStore(kept, kept_pointer(id, copy), align);
    else
      b_.CreateMaskedStore(kept, kept_pointer(id, copy), align, mask_);
  }
}

void KernelEmitter::restore(size_t id) {
  llvm::Type* type = scalars_.vector_type(kernel_.instructions[id].dtype);
  const auto align = llvm::Align(4);
  std::vector<Value> copies;
  for (int copy = 0; copy < copies_; ++copy) {
    Value at = kept_pointer(id, copy);
    if (mask_ == nullptr)
      copies.push_back(b_.CreateAlignedLoad(type, at, align));
    else
      copies.push_back(
          b_.CreateMaskedLoad(type, at, align, mask_, llvm::Constant::getNullValue(type)));
  }
  values_[id] = std::move(copies);
}

}  // namespace fullbore::jit

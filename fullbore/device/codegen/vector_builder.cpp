#include "fullbore/device/codegen/vector_builder.h"

#include "fullbore/base/check.h"

namespace fullbore::jit {

VectorBuilder::VectorBuilder(llvm::IRBuilder<>& builder, llvm::Type* like, bool avx512)
    : b_(builder), type_(like), is_double_(like->getScalarType()->isDoubleTy()) {
  llvm::Type* scalar = is_double_ ? builder.getInt64Ty() : builder.getInt32Ty();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  integer_type_ =
      vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
  fills_avx512_ =
      avx512 && vector != nullptr && vector->getNumElements() == (is_double_ ? 8U : 16U);
}

llvm::Value* VectorBuilder::fma(Value a, Value b, Value c) const {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a, b, c});
}

llvm::Value* VectorBuilder::abs(Value a) const {
  return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
}

llvm::Value* VectorBuilder::sqrt(Value a) const {
  return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
}

llvm::Value* VectorBuilder::copysign(Value magnitude, Value sign) const {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

llvm::Value* VectorBuilder::polynomial(Value x, std::initializer_list<double> coefficients) const {
  const double* c = coefficients.end() - 1;
  Value result = real(*c);
  while (c != coefficients.begin()) result = fma(result, x, real(*--c));
  return result;
}

// Adding 1.5 * 2^(mantissa bits) leaves no bits for a fraction: the processor's rounding to nearest
// even does the work, and the low bits of the sum are the integer.
VectorBuilder::Rounded VectorBuilder::round(Value x) const {
  Value shift = real(is_double_ ? 0x1.8p52 : 0x1.8p23);
  Value sum = add(x, shift);
  return {sub(sum, shift), b_.CreateSub(bits(sum), bits(shift))};
}

llvm::Value* VectorBuilder::power_of_two(Value n) const {
  const int bias = is_double_ ? 1023 : 127;
  const int mantissa = is_double_ ? 52 : 23;
  return from_bits(b_.CreateShl(b_.CreateAdd(n, integer(bias)), integer(mantissa)));
}

llvm::Value* VectorBuilder::scale_where(Value condition, Value a, Value n) const {
  FB_CHECK(fills_avx512_);
  const auto id = is_double_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                             : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
  const unsigned lanes = is_double_ ? 8 : 16;
  Value mask = b_.CreateBitCast(condition, b_.getIntNTy(lanes));
  constexpr uint32_t kRoundingOfTheProcessor = 4;
  return b_.CreateIntrinsic(
      id, {},
      {a, n, llvm::Constant::getNullValue(type_), mask, b_.getInt32(kRoundingOfTheProcessor)});
}

llvm::Value* VectorBuilder::look_up(const std::array<float, 16>& table, Value index) const {
  FB_CHECK(fills_avx512_ && !is_double_);
  Value values = llvm::ConstantDataVector::get(b_.getContext(), llvm::ArrayRef<float>(table));
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {values, index});
}

bool VectorBuilder::fills_avx2() const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  return !is_double_ && vector != nullptr && vector->getNumElements() == 8;
}

llvm::Value* VectorBuilder::look_up(const std::array<float, 8>& table, Value index) const {
  FB_CHECK(fills_avx2());
  Value values = llvm::ConstantDataVector::get(b_.getContext(), llvm::ArrayRef<float>(table));
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {values, index});
}

}  // namespace fullbore::jit

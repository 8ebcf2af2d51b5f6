#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>

#include "fullbore/device/codegen/llvm_headers.h"

namespace fullbore::jit {

/// Arithmetic on vectors of one floating type and the integers of its width, in the words of a
/// formula. Comparisons are ordered unless said otherwise: false when an operand is NaN.
class VectorBuilder {
 public:
  using Value = llvm::Value*;

  /// `like`: a value of the floating vector (or scalar) type to work in. `avx512`: the processor has
  /// AVX-512F, whose instructions serve vectors that fill its registers.
  VectorBuilder(llvm::IRBuilder<>& builder, llvm::Type* like, bool avx512 = false);

  bool is_double() const { return is_double_; }
  llvm::Type* type() const { return type_; }
  llvm::Type* integer_type() const { return integer_type_; }
  llvm::IRBuilder<>& ir() const { return b_; }

  Value real(double value) const { return llvm::ConstantFP::get(type_, value); }
  Value integer(int64_t value) const {
    return llvm::ConstantInt::get(integer_type_, static_cast<uint64_t>(value), true);
  }
  Value infinity() const { return llvm::ConstantFP::getInfinity(type_); }
  Value nan() const { return llvm::ConstantFP::getQNaN(type_); }

  Value add(Value a, Value b) const { return b_.CreateFAdd(a, b); }
  Value sub(Value a, Value b) const { return b_.CreateFSub(a, b); }
  Value mul(Value a, Value b) const { return b_.CreateFMul(a, b); }
  Value div(Value a, Value b) const { return b_.CreateFDiv(a, b); }
  Value neg(Value a) const { return b_.CreateFNeg(a); }
  Value fma(Value a, Value b, Value c) const;  ///< a * b + c, rounded once
  Value abs(Value a) const;
  Value sqrt(Value a) const;
  Value copysign(Value magnitude, Value sign) const;
  /// c0 + c1 x + c2 x^2 + ... by Horner's rule.
  Value polynomial(Value x, std::initializer_list<double> coefficients) const;

  Value less(Value a, Value b) const { return b_.CreateFCmpOLT(a, b); }
  Value greater(Value a, Value b) const { return b_.CreateFCmpOGT(a, b); }
  Value equal(Value a, Value b) const { return b_.CreateFCmpOEQ(a, b); }
  Value is_nan(Value a) const { return b_.CreateFCmpUNO(a, a); }
  Value select(Value condition, Value a, Value b) const { return b_.CreateSelect(condition, a, b); }

  Value bits(Value a) const { return b_.CreateBitCast(a, integer_type_); }
  Value from_bits(Value a) const { return b_.CreateBitCast(a, type_); }
  /// x rounded to the nearest integer, as a float and in the low bits of an integer; right for
  /// |x| < 2^22 (f32) or 2^51 (f64), garbage but no undefined behaviour beyond.
  struct Rounded {
    Value real;
    Value integer;
  };
  Rounded round(Value x) const;
  /// 2^n for integers n in the range of normal exponents.
  Value power_of_two(Value n) const;

  /// Whether scale_where() and look_up() of 16 have an instruction.
  bool fills_avx512() const { return fills_avx512_; }
  /// Whether look_up() of 8 has one: vectors of so many f32 are made for processors with AVX2 alone.
  bool fills_avx2() const;
  /// a 2^n for an integer n held as a float, rounded once; 0 where the condition is false, whatever a and n are there.
  /// Asks for fills_avx512().
  Value scale_where(Value condition, Value a, Value n) const;
  /// table[index mod 16] in each lane, for f32. Asks for fills_avx512().
  Value look_up(const std::array<float, 16>& table, Value index) const;
  /// table[index mod 8] in each lane, for f32. Asks for fills_avx2().
  Value look_up(const std::array<float, 8>& table, Value index) const;

 private:
  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* integer_type_;
  bool is_double_;
  bool fills_avx512_;
};

}  // namespace fullbore::jit

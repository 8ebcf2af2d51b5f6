#include "fullbore/device/codegen/vector_math.h"
#include "fullbore/device/codegen/vector_math_parts.h"

namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

// Cody and Waite: pi/2 in three parts. With fused multiply-add no product is rounded, so the parts
// carry the full mantissa and the error is that of the last: 2^-75 |n| (f32), 2^-164 |n| (f64).
ReducedAngle reduce(const VectorBuilder& v, Value x) {
  const VectorBuilder::Rounded n = v.round(v.mul(x, v.real(0.6366197723675814)));
  Value minus_n = v.neg(n.real);
  Value r = x;
  if (v.is_double()) {
    r = v.fma(minus_n, v.real(0x1.921fb54442d18p+0), r);
    r = v.fma(minus_n, v.real(0x1.1a62633145c07p-54), r);
    r = v.fma(minus_n, v.real(-0x1.f1976b7ed8fbcp-110), r);
  } else {
    r = v.fma(minus_n, v.real(0x1.921fb6p+0), r);
    r = v.fma(minus_n, v.real(-0x1.777a5cp-25), r);
    r = v.fma(minus_n, v.real(-0x1.ee59dap-50), r);
  }
  return {r, n.integer};
}

// sin(r + quadrant pi/2) on the reduced range.
Value sine_of(const VectorBuilder& v, Value r, Value quadrant) {
  llvm::IRBuilder<>& b = v.ir();
  Value z = v.mul(r, r);
  Value s =
      v.is_double()
          ? v.polynomial(z,
                         {-0.16666666666666632, 0.008333333333322472, -0.00019841269829835664,
                          2.7557313697326334e-06, -2.5050758486231213e-08, 1.5896796111510945e-10})
          : v.polynomial(z, {-0.16666655242443085, 0.008332191035151482, -0.00019518598855938762});
  Value c =
      v.is_double()
          ? v.polynomial(z,
                         {0.0416666666666666, -0.0013888888888874457, 2.480158728965287e-05,
                          -2.755731439387736e-07, 2.087572811293104e-09, -1.1359865141692134e-11})
          : v.polynomial(z, {0.04166664555668831, -0.00138873013202101, 2.4430670237052254e-05});
  Value sine = v.fma(v.mul(z, r), s, r);
  // 1 - z/2 loses its last bits to the 1; they are put back with the rest of the series.
  Value half = v.mul(z, v.real(0.5));
  Value head = v.sub(v.real(1), half);
  Value lost = v.sub(v.sub(v.real(1), head), half);
  Value cosine = v.add(head, v.fma(v.mul(z, z), c, lost));
  const auto bit = [&](int64_t mask) {
    return b.CreateICmpNE(b.CreateAnd(quadrant, v.integer(mask)), v.integer(0));
  };
  Value result = v.select(bit(1), cosine, sine);
  return v.select(bit(2), v.neg(result), result);
}

// Lanes beyond the range of the reduction are computed by the C library, one at a time; a block
// that ordinary vectors jump over.
Value with_huge_lanes(const VectorBuilder& v, Value x, Value result, double limit,
                      const char* function) {
  llvm::IRBuilder<>& b = v.ir();
  Value huge = v.greater(v.abs(x), v.real(limit));
  auto* vector = llvm::cast<llvm::FixedVectorType>(v.type());
  const unsigned lanes = vector->getNumElements();
  Value any = b.CreateICmpNE(b.CreateBitCast(huge, b.getIntNTy(lanes)),
                             llvm::ConstantInt::get(b.getIntNTy(lanes), 0));
  llvm::Function* parent = b.GetInsertBlock()->getParent();
  auto* before = b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "huge", parent);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "reduced", parent);
  b.CreateCondBr(any, slow, after, llvm::MDBuilder(b.getContext()).createBranchWeights(1, 100000));
  b.SetInsertPoint(slow);
  llvm::Type* scalar = vector->getElementType();
  llvm::FunctionCallee callee = parent->getParent()->getOrInsertFunction(function, scalar, scalar);
  Value exact = result;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value one = b.CreateCall(callee, {b.CreateExtractElement(x, lane)});
    exact = b.CreateInsertElement(exact, one, lane);
  }
  exact = b.CreateSelect(huge, exact, result);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode* joined = b.CreatePHI(v.type(), 2);
  joined->addIncoming(result, before);
  joined->addIncoming(exact, slow);
  return joined;
}

// The same of a scalar beyond the limit, in a block that others jump over.
ReducedAngle with_huge(const VectorBuilder& v, Value x, const ReducedAngle& ordinary,
                       double limit) {
  llvm::IRBuilder<>& b = v.ir();
  Value magnitude = v.abs(x);
  Value huge = b.CreateAnd(v.greater(magnitude, v.real(limit)), v.less(magnitude, v.infinity()));
  llvm::Function* parent = b.GetInsertBlock()->getParent();
  auto* before = b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "huge", parent);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "reduced", parent);
  b.CreateCondBr(huge, slow, after, llvm::MDBuilder(b.getContext()).createBranchWeights(1, 100000));
  b.SetInsertPoint(slow);
  const ReducedAngle exact = reduce_huge(b, v.is_double() ? x : b.CreateFPExt(x, b.getDoubleTy()));
  Value remainder = v.is_double() ? exact.remainder : b.CreateFPTrunc(exact.remainder, v.type());
  Value quadrant = b.CreateZExtOrTrunc(exact.quadrant, v.integer_type());
  b.CreateBr(after);
  b.SetInsertPoint(after);
  const auto joined = [&](Value a, Value of_huge) {
    llvm::PHINode* phi = b.CreatePHI(a->getType(), 2);
    phi->addIncoming(a, before);
    phi->addIncoming(of_huge, slow);
    return phi;
  };
  return {joined(ordinary.remainder, remainder), joined(ordinary.quadrant, quadrant)};
}

// Up to these limits n is exact and the remainder right to the last bit or so.
constexpr double kLimitF32 = 0x1p21;
constexpr double kLimitF64 = 0x1p30;

// sin(x + quarters pi/2)
Value sine(llvm::IRBuilder<>& builder, Value x, int64_t quarters, const char* of_double,
           const char* of_float) {
  const VectorBuilder v(builder, x->getType());
  const double limit = v.is_double() ? kLimitF64 : kLimitF32;
  ReducedAngle reduced = reduce(v, x);
  if (!x->getType()->isVectorTy()) reduced = with_huge(v, x, reduced, limit);
  Value quadrant = reduced.quadrant;
  if (quarters != 0) quadrant = builder.CreateAdd(quadrant, v.integer(quarters));
  Value result = sine_of(v, reduced.remainder, quadrant);
  if (!x->getType()->isVectorTy()) return result;
  return with_huge_lanes(v, x, result, limit, v.is_double() ? of_double : of_float);
}

}  // namespace

llvm::Value* emit_sin(llvm::IRBuilder<>& builder, llvm::Value* x) {
  return sine(builder, x, 0, "sin", "sinf");
}

llvm::Value* emit_cos(llvm::IRBuilder<>& builder, llvm::Value* x) {
  return sine(builder, x, 1, "cos", "cosf");
}

}  // namespace fullbore::jit

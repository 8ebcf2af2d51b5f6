#include "fullbore/device/cpu/gemm/gemm_unit.h"

namespace fullbore::cpu {
namespace {

template <class T>
struct GemmUnits {
  const GemmUnit<T>& baseline;
  const GemmUnit<T>* avx2 =
      nullptr;  ///< null where the program is for another family of processors
  const GemmUnit<T>* avx512 = nullptr;
};

#if defined(__x86_64__)
constexpr GemmUnits<float> kUnitsF32{kGemmBaselineF32, &kGemmAvx2F32, &kGemmAvx512F32};
constexpr GemmUnits<double> kUnitsF64{kGemmBaselineF64, &kGemmAvx2F64, &kGemmAvx512F64};
constexpr const GemmUnit<VnniPair>* kVnniUnit = &kGemmAvx512Bf16;
#else
constexpr GemmUnits<float> kUnitsF32{kGemmBaselineF32};
constexpr GemmUnits<double> kUnitsF64{kGemmBaselineF64};
constexpr const GemmUnit<VnniPair>* kVnniUnit = nullptr;
#endif

template <class T>
const GemmUnit<T>* choose(VectorUnit unit, const GemmUnits<T>& units) {
  if (unit > this_processor().vector_unit) return nullptr;
  switch (unit) {
    case VectorUnit::baseline: return &units.baseline;
    case VectorUnit::avx2: return units.avx2;
    case VectorUnit::avx512: return units.avx512;
  }
  return nullptr;
}

}  // namespace

template <>
const GemmUnit<float>* gemm_unit(VectorUnit unit) {
  return choose(unit, kUnitsF32);
}

template <>
const GemmUnit<double>* gemm_unit(VectorUnit unit) {
  return choose(unit, kUnitsF64);
}

template <>
const GemmUnit<VnniPair>* gemm_unit(VectorUnit) {
  return this_processor().avx512_bf16 ? kVnniUnit : nullptr;
}

MatmulUnits MatmulUnits::of_this_processor() {
  const Processor processor = this_processor();
  return {processor.vector_unit, processor.avx512_bf16, processor.amx_bf16};
}

}  // namespace fullbore::cpu

#include "fullbore/device/cpu/gemm/panel_unit.h"

namespace fullbore::cpu {
namespace {

template <class T>
struct PanelUnits {
  const PanelUnit<T>& baseline;
  const PanelUnit<T>* avx2 =
      nullptr;  ///< null where the program is for another family of processors
  const PanelUnit<T>* avx512 = nullptr;
};

#if defined(__x86_64__)
constexpr PanelUnits<float> kUnitsF32{kPanelBaselineF32, &kPanelAvx2F32, &kPanelAvx512F32};
constexpr PanelUnits<double> kUnitsF64{kPanelBaselineF64, &kPanelAvx2F64, &kPanelAvx512F64};
constexpr const PanelUnit<Bf16Pair>* kPairUnit = &kPanelAvx512Bf16;
#else
constexpr PanelUnits<float> kUnitsF32{kPanelBaselineF32};
constexpr PanelUnits<double> kUnitsF64{kPanelBaselineF64};
constexpr const PanelUnit<Bf16Pair>* kPairUnit = nullptr;
#endif

template <class T>
const PanelUnit<T>* choose(VectorUnit unit, const PanelUnits<T>& units) {
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
const PanelUnit<float>* panel_unit(VectorUnit unit) {
  return choose(unit, kUnitsF32);
}

template <>
const PanelUnit<double>* panel_unit(VectorUnit unit) {
  return choose(unit, kUnitsF64);
}

template <>
const PanelUnit<Bf16Pair>* panel_unit(VectorUnit) {
  return this_processor().bf16_products ? kPairUnit : nullptr;
}

ProductUnits ProductUnits::of_this_processor() {
  return {this_processor().vector_unit, this_processor().bf16_products};
}

}  // namespace fullbore::cpu

#include "fullbore/backend/cpu/matmul/panel_unit.h"

namespace fullbore::cpu {
namespace {

template <class T>
const PanelUnit<T>* choose(VectorUnit unit, const PanelUnit<T>& baseline, const PanelUnit<T>& avx2,
                           const PanelUnit<T>& avx512) {
  if (unit > this_processor().vector_unit) return nullptr;
  switch (unit) {
    case VectorUnit::baseline: return &baseline;
    case VectorUnit::avx2: return &avx2;
    case VectorUnit::avx512: return &avx512;
  }
  return nullptr;
}

}  // namespace

template <>
const PanelUnit<float>* panel_unit(VectorUnit unit) {
  return choose(unit, kPanelBaselineF32, kPanelAvx2F32, kPanelAvx512F32);
}

template <>
const PanelUnit<double>* panel_unit(VectorUnit unit) {
  return choose(unit, kPanelBaselineF64, kPanelAvx2F64, kPanelAvx512F64);
}

template <>
const PanelUnit<Bf16Pair>* panel_unit(VectorUnit) {
  return this_processor().bf16_products ? &kPanelAvx512Bf16 : nullptr;
}

ProductUnits ProductUnits::of_this_processor() {
  return {this_processor().vector_unit, this_processor().bf16_products};
}

}  // namespace fullbore::cpu

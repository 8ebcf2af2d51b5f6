#pragma once
#include <cstdint>

#include "fullbore/backend/cpu/processor.h"
#include "fullbore/base/dtype.h"

namespace fullbore::cpu {

/// c[rows, columns] = or += a[rows, depth] * b[depth, columns], by strides in elements. At most one
/// panel wide.
template <class T>
struct PanelTile {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const T* a = nullptr;
  int64_t a_row = 0;
  int64_t a_depth = 1;
  const T* b = nullptr;
  int64_t b_depth = 0;  ///< columns are contiguous
  T* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;
};

/// c[rows, columns] = sums of a[rows, depth] * b[columns, depth]: both contiguous in depth.
template <class T>
struct DotTile {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const T* a = nullptr;
  int64_t a_row = 0;
  const void* b = nullptr;  ///< of b_dtype
  DType b_dtype = DType::f32;
  int64_t b_column = 0;
  T* c = nullptr;
  int64_t c_row = 0;
};

/// A matrix of any floating dtype to be copied.
struct SourceMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;  ///< elements between rows
  int64_t rows = 0;
  int64_t columns = 0;
};

/// The inner loops of matrix products for one vector unit; T is float or double, in which products
/// and sums are made. Register tiles after Goto and van de Geijn 2008 ("Anatomy of High-Performance
/// Matrix Multiplication"): a is broadcast, b is read in vectors, c stays in registers over all of
/// `depth`.
template <class T>
struct PanelUnit {
  int lanes = 1;                    ///< elements of a vector
  int panel = 1;                    ///< columns of the widest tile: a few vectors
  double flops_per_nanosecond = 1;  ///< roughly, of one core
  void (*multiply)(const PanelTile<T>& tile) = nullptr;
  void (*dot)(const DotTile<T>& tile) = nullptr;
  /// to[r * stride + c] = from[r, c], widened to T.
  void (*copy)(const SourceMatrix& from, T* to, int64_t stride) = nullptr;
  /// to[c * stride + r] = from[r, c], widened to T.
  void (*copy_transposed)(const SourceMatrix& from, T* to, int64_t stride) = nullptr;
  /// to[r * to_stride + c] = from[r * from_stride + c], rounded to `dtype`.
  void (*round)(const T* from, int64_t from_stride, void* to, int64_t to_stride, DType dtype,
                int64_t rows, int64_t columns) = nullptr;
};

/// The unit's loops, or null if this processor lacks it.
template <class T>
const PanelUnit<T>* panel_unit(VectorUnit unit);
template <>
const PanelUnit<float>* panel_unit(VectorUnit unit);
template <>
const PanelUnit<double>* panel_unit(VectorUnit unit);

extern const PanelUnit<float> kPanelAvx512F32;
extern const PanelUnit<double> kPanelAvx512F64;
extern const PanelUnit<float> kPanelAvx2F32;
extern const PanelUnit<double> kPanelAvx2F64;
extern const PanelUnit<float> kPanelBaselineF32;
extern const PanelUnit<double> kPanelBaselineF64;

}  // namespace fullbore::cpu

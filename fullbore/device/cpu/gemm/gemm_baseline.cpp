#include <algorithm>
#include <type_traits>
#include <utility>

#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

// What every processor of the family has: 16 bytes, no fused multiply-add.
#define FB_TARGET

namespace fullbore::cpu {
namespace {

template <class T>
struct Baseline {
  using Element = T;
  using Mask = int;
  static constexpr int kLanes = 16 / sizeof(T);
  static constexpr int kBlockVectors = 2;
  static constexpr int kDotRows = 2;
  static constexpr double kFlopsPerNanosecond = 32.0 / sizeof(T);
  static constexpr int rows_of(int) { return 4; }
  typedef T Register __attribute__((vector_size(16)));  // NOLINT: `using` cannot say it

  static Register zero() { return Register{}; }
  static Register load(const T* p) { return load_as(p); }
  static void store(T* p, Register x) {
    for (int i = 0; i < kLanes; ++i) p[i] = x[i];
  }
  static Register broadcast(T x) { return x - Register{}; }
  static Register add(Register a, Register b) { return a + b; }
  static Register fma(Register a, Register b, Register c) { return a * b + c; }
  static Mask mask_of(int count) { return count; }
  static Register load_some(const T* p, Mask count) {
    if (count == kLanes) return load(p);
    Register x{};
    for (int i = 0; i < count; ++i) x[i] = p[i];
    return x;
  }
  static void store_some(T* p, Register x, Mask count) {
    for (int i = 0; i < count; ++i) p[i] = x[i];
  }
  static T sum(Register x) {
    T total = 0;
    for (int i = 0; i < kLanes; ++i) total += x[i];
    return total;
  }
  template <class Source>
  static Register load_as(const Source* p) {
    Register x{};
    for (int i = 0; i < kLanes; ++i) x[i] = cpu::load(p[i]);
    return x;
  }
  template <class Target>
  static void store_as(Target* p, Register x) {
    for (int i = 0; i < kLanes; ++i) p[i] = cpu::store<Target>(x[i]);
  }
  static void transpose(Register (&x)[kLanes]) {
    for (int r = 0; r < kLanes; ++r)
      for (int c = 0; c < r; ++c) {
        const T above = x[c][r];
        x[c][r] = x[r][c];
        x[r][c] = above;
      }
  }
};

#include "fullbore/device/cpu/gemm/gemm_unit.inc"

}  // namespace

const GemmUnit<float> kGemmBaselineF32 = make_gemm_unit<Baseline<float>>();
const GemmUnit<double> kGemmBaselineF64 = make_gemm_unit<Baseline<double>>();

}  // namespace fullbore::cpu

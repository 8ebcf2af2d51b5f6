#include <algorithm>
#include <bit>
#include <cmath>

#include "fullbore/base/quantize.h"
#include "fullbore/device/cpu/quant/int8_unit.h"

#define FB_TARGET
#define FB_INLINE static inline

namespace fullbore::cpu {
namespace {

/// Number by number.
struct Baseline {
  using Floats = float;
  using Bits = uint32_t;
  using Vector = int32_t;
  using Sums = int32_t;
  using Element = int16_t;
  static constexpr int kLanes = 1;
  static constexpr int64_t kStep = 1;
  static constexpr int kBias = 0;
  static constexpr int kTileRows = 2;
  static constexpr int kRowColumns = 4;

  FB_INLINE Floats load(const float* p) { return *p; }
  FB_INLINE Floats broadcast(float x) { return x; }
  FB_INLINE Bits no_bits() { return 0; }
  FB_INLINE Bits larger(Bits bits, Floats x) {
    return std::max(bits, std::bit_cast<uint32_t>(x) & 0x7fffffffU);
  }
  FB_INLINE uint32_t largest(Bits bits) { return bits; }
  FB_INLINE void store_rounded(int16_t* q, Floats x, Floats scale) {
    const float rounded = std::nearbyint(x / scale);
    *q = std::isnan(rounded) ? int16_t{0} : static_cast<int16_t>(rounded);
  }

  FB_INLINE Sums no_sums() { return 0; }
  FB_INLINE Vector load_x(const char* p) { return *reinterpret_cast<const int16_t*>(p); }
  FB_INLINE Vector load_w(const int8_t* p) { return *p; }
  FB_INLINE Vector load_some_w(const int8_t* p, int) { return *p; }
  FB_INLINE Sums add(Sums sums, Vector x, Vector w) { return sums + x * w; }
  FB_INLINE int32_t total(Sums sums) { return sums; }
  FB_INLINE void totals(const Sums* sums, int32_t* to) { std::copy_n(sums, 4, to); }
};

#include "fullbore/device/cpu/quant/int8_unit.inc"

}  // namespace

const Int8Unit kInt8Baseline = make_int8_unit<Baseline>("sse2", 4);

}  // namespace fullbore::cpu

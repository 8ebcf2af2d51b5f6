#include "fullbore/device/cpu/gemm/amx_tiles.h"

#include "fullbore/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define FB_TARGET __attribute__((target("amx-tile,amx-bf16")))

namespace fullbore::cpu {
namespace {

// What _tile_loadconfig reads: Intel's Architecture Instruction Set Extensions reference, section 3.1.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr int64_t kTile = 16;

// Tiles 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b: compilers take their numbers as constants alone.
template <bool kRows, bool kColumns>
FB_TARGET void block(const AmxProduct& p, int64_t row, int64_t column) {
  float* c = p.c + row * p.c_row + column;
  float* below = c + kTile * p.c_row;
  const auto c_row = static_cast<size_t>(p.c_row) * sizeof(float);
  const auto a_row = static_cast<size_t>(p.a_row), b_row = static_cast<size_t>(p.b_row);
  if (p.goes_on) {
    _tile_loadd(0, c, c_row);
    if constexpr (kColumns) _tile_loadd(1, c + kTile, c_row);
    if constexpr (kRows) _tile_loadd(2, below, c_row);
    if constexpr (kRows && kColumns) _tile_loadd(3, below + kTile, c_row);
  } else {
    _tile_zero(0);
    if constexpr (kColumns) _tile_zero(1);
    if constexpr (kRows) _tile_zero(2);
    if constexpr (kRows && kColumns) _tile_zero(3);
  }
  const char* a = p.a + row * p.a_row;
  const char* b = p.b + column * 4;
  Prefetcher prefetcher;
  if (p.asks > 0) prefetcher = *p.prefetcher;
  for (const AmxStep& step : p.steps) {
    for (int i = 0; i < p.asks; ++i) prefetcher.ask();
    _tile_loadd(4, a + step.a, a_row);
    _tile_loadd(6, b + step.b, b_row);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumns) {
      _tile_loadd(7, b + step.b + kTile * 4, b_row);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRows) {
      _tile_loadd(5, a + step.a + kTile * p.a_row, a_row);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kColumns) _tile_dpbf16ps(3, 5, 7);
    }
  }
  if (p.asks > 0) *p.prefetcher = prefetcher;
  _tile_stored(0, c, c_row);
  if constexpr (kColumns) _tile_stored(1, c + kTile, c_row);
  if constexpr (kRows) _tile_stored(2, below, c_row);
  if constexpr (kRows && kColumns) _tile_stored(3, below + kTile, c_row);
}

template <bool kColumns>
void blocks_of_rows(const AmxProduct& p, int64_t column) {
  int64_t row = 0;
  for (; row + 2 * kTile <= p.rows; row += 2 * kTile) block<true, kColumns>(p, row, column);
  if (row < p.rows) block<false, kColumns>(p, row, column);
}

FB_TARGET void shape_tiles() {
  // Static: of an object on the stack GCC 12 stores no more than the first bytes, for its intrinsic names no others.
  static constexpr TileShapes kShapes;
  _tile_loadconfig(&kShapes);
}
FB_TARGET void release_tiles() { _tile_release(); }

}  // namespace

AmxTiles::AmxTiles() { shape_tiles(); }
AmxTiles::~AmxTiles() { release_tiles(); }

void AmxTiles::multiply(const AmxProduct& p) {
  int64_t column = 0;
  for (; column + 2 * kTile <= p.columns; column += 2 * kTile) blocks_of_rows<true>(p, column);
  if (column < p.columns) blocks_of_rows<false>(p, column);
}

}  // namespace fullbore::cpu

#else

namespace fullbore::cpu {

AmxTiles::AmxTiles() { FB_CHECK(false, "tiles of bf16 on a processor without any"); }
AmxTiles::~AmxTiles() = default;
void AmxTiles::multiply(const AmxProduct&) {}

}  // namespace fullbore::cpu

#endif

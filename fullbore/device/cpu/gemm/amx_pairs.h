#pragma once
#include "fullbore/device/cpu/gemm/gemm_unit.h"

namespace fullbore::cpu {

/// As GemmUnit<VnniPair>::multiply, of as many columns as one likes. What of it makes whole tiles is made by the processor's
/// (16 rows by 16 columns by 32 of depth), what is behind them by the unit. An AmxTiles must live on this thread. `words`: of
/// AVX-512 too; it turns operands whose rows lie across.
void multiply_pairs_by_tiles(const GemmUnit<VnniPair>& unit, const GemmUnit<float>& words,
                             const GemmTile<VnniPair>& tile);

}  // namespace fullbore::cpu

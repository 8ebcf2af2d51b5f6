// Which elements dropout keeps.
#include "fullbore/device/cuda/kernels/philox.h"

// kept [count]: element e has eighth e mod 8 of draw e div 8, and is kept if that is at least `threshold`. A draw a thread.
FB_KERNEL void dropout_mask(const unsigned long* seed, const unsigned long* step,
                            const unsigned long* iteration, unsigned char* kept, long count,
                            unsigned long site, int threshold) {
  const Draws draws(seed, step, iteration, site);
  const long stride = static_cast<long>(blocks_x()) * threads();
  for (long draw = static_cast<long>(block_x()) * threads() + thread(); draw * 8 < count;
       draw += stride) {
    const Draw bits = draws.at(static_cast<unsigned long>(draw));
    for (int e = 0; e < 8; ++e)
      if (draw * 8 + e < count)
        kept[draw * 8 + e] = static_cast<int>(bits.eighth(e)) >= threshold ? 1 : 0;
  }
}

#pragma once
// The random numbers of fullbore/base/philox.h, to the bit. Source: Salmon et al. 2011, Philox4x32-10.
#include "fullbore/device/cuda/kernels/gpu.h"

/// 128 bits of a counter of 128 bits and a key of 64, as eighths of 16 bits.
struct Draw {
  unsigned long half[2];
  FB_DEVICE unsigned eighth(int e) const {
    return static_cast<unsigned>((e < 4 ? half[0] : half[1]) >> (16 * (e & 3))) & 0xffffU;
  }
};

FB_DEVICE Draw philox(unsigned long key, unsigned long low, unsigned long high) {
  auto c0 = static_cast<unsigned>(low), c1 = static_cast<unsigned>(low >> 32);
  auto c2 = static_cast<unsigned>(high), c3 = static_cast<unsigned>(high >> 32);
  auto k0 = static_cast<unsigned>(key), k1 = static_cast<unsigned>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long product0 = 0xD2511F53UL * c0, product1 = 0xCD9E8D57UL * c2;
    c0 = static_cast<unsigned>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<unsigned>(product1);
    c2 = static_cast<unsigned>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<unsigned>(product0);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0 | static_cast<unsigned long>(c1) << 32, c2 | static_cast<unsigned long>(c3) << 32}};
}

/// Of a node's site: seed, step and the iteration of a loop, or null, as scalars in memory.
struct Draws {
  unsigned long key, stream, first;

  FB_DEVICE Draws() : key(0), stream(0), first(0) {}
  FB_DEVICE Draws(const unsigned long* seed, const unsigned long* step,
                  const unsigned long* iteration, unsigned long site)
      : key(*seed),
        stream(*step + (site << 40)),
        first(iteration != nullptr ? *iteration << 32 : 0) {}
  FB_DEVICE Draw at(unsigned long draw) const { return philox(key, first + draw, stream); }
};

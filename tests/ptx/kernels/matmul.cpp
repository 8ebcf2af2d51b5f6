// c [m,n] = a [m,k] b [k,n] of bf16, sums in f32, by tensor cores: a block of four warps makes 32 x 32 of c, and brings the
// next 32 of k while it works on these. m, n and k are multiples of 32.
#include "fullbore/device/cuda/kernels/gpu.h"

constexpr int kTile = 32;
constexpr int kPad = 8;  // rows of shared memory begin in different banks
constexpr int kRow = kTile + kPad;

FB_KERNEL void matmul(const unsigned short* a, const unsigned short* b, float* c, int n, int k) {
  FB_SHARED static __attribute__((aligned(16))) unsigned short of_a[2][kTile * kRow];
  FB_SHARED static __attribute__((aligned(16))) unsigned short of_b[2][kTile * kRow];
  const int row0 = block_y() * kTile, column0 = block_x() * kTile;
  const int warp = thread() / 32, lane = thread() % 32;
  // 128 threads bring 32 rows of 64 bytes of each operand.
  const int row = thread() / 4, part = thread() % 4 * 8;
  const auto bring = [&](int stage, int step) __attribute__((device)) {
    const long depth = static_cast<long>(step) * kTile;
    copy_later(shared_address(&of_a[stage][row * kRow + part]),
               a + (row0 + row) * static_cast<long>(k) + depth + part);
    copy_later(shared_address(&of_b[stage][row * kRow + part]),
               b + (depth + row) * n + column0 + part);
    commit_copies();
  };
  const int rows = warp / 2 * 16, columns = warp % 2 * 16;  // of the tile that the warp makes
  float sums[2][4] = {};
  const int steps = k / kTile;
  bring(0, 0);
  for (int step = 0; step < steps; ++step) {
    const int stage = step % 2;
    if (step + 1 < steps) {
      bring(1 - stage, step + 1);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    barrier();
    for (int depth = 0; depth < kTile; depth += 16) {
      unsigned fa[4], fb[4];
      const unsigned at_a =
          shared_address(&of_a[stage][(rows + lane % 16) * kRow + depth + lane / 16 * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                   : "r"(at_a)
                   : "memory");
      const unsigned at_b =
          shared_address(&of_b[stage][(depth + lane % 16) * kRow + columns + lane / 16 * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                   : "r"(at_b)
                   : "memory");
      for (int half = 0; half < 2; ++half)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[half][0]), "+f"(sums[half][1]), "+f"(sums[half][2]), "+f"(sums[half][3])
            : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * half]),
              "r"(fb[2 * half + 1]));
    }
    barrier();  // before the stage is brought anew
  }
  for (int half = 0; half < 2; ++half)
    for (int part_of = 0; part_of < 4; ++part_of) {
      const int y = row0 + rows + lane / 4 + part_of / 2 * 8;
      const int x = column0 + columns + half * 8 + lane % 4 * 2 + part_of % 2;
      c[static_cast<long>(y) * n + x] = sums[half][part_of];
    }
}

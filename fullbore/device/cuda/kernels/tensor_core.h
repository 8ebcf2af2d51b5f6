#pragma once
// Warp-wide products of 16-bit floats and of tf32 with sums in f32. Lane 4 g + t has of a [16,K] rows g and g + 8, of b
// [K,8] column g, of the sums [16,8] rows g and g + 8 and columns 2 t and 2 t + 1; K is 16, and 8 of tf32, of which it has
// elements t and t + 4 (PTX ISA 9.7.14.5).
#include "fullbore/device/cuda/kernels/elements.h"

/// Four 8 x 8 matrices of 16-bit elements: lane 8 i + r gives the address of row r of matrix i.
FB_DEVICE void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
FB_DEVICE void load_transposed(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// sums += a b.
FB_DEVICE void multiply(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, Bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
FB_DEVICE void multiply(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, F16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// f32 whose mantissa is rounded to 10 bits for a product: to nearest, halves away from zero; NaN stays NaN.
struct Tf32 {
  unsigned bits;
};
FB_DEVICE unsigned rounded_to_tf32(unsigned x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__builtin_bit_cast(float, x)));
  return y;
}

/// sums += a b, operands rounded.
FB_DEVICE void multiply(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, Tf32) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

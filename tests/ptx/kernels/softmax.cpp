// y[row] = softmax(x[row]): one block a row.
#include "fullbore/device/cuda/kernels/gpu.h"

constexpr int kMostWarps = 32;

FB_DEVICE float larger(float a, float b) { return a > b ? a : b; }

FB_KERNEL void softmax(const float* x, float* y, int columns) {
  FB_SHARED static float largest_of_warp[kMostWarps];
  FB_SHARED static float sum_of_warp[kMostWarps];
  const float* row = x + static_cast<long>(block_x()) * columns;
  const int warps = threads() / 32;
  float largest = -__builtin_inff();
  for (int i = thread(); i < columns; i += threads()) largest = larger(largest, row[i]);
  for (int mask = 16; mask > 0; mask /= 2) largest = larger(largest, from_lane_xor(largest, mask));
  if (thread() % 32 == 0) largest_of_warp[thread() / 32] = largest;
  barrier();
  for (int warp = 0; warp < warps; ++warp) largest = larger(largest, largest_of_warp[warp]);
  constexpr float kLog2E = 1.4426950408889634F;
  float sum = 0;
  for (int i = thread(); i < columns; i += threads())
    sum += __nvvm_ex2_approx_f((row[i] - largest) * kLog2E);
  for (int mask = 16; mask > 0; mask /= 2) sum += from_lane_xor(sum, mask);
  if (thread() % 32 == 0) sum_of_warp[thread() / 32] = sum;
  barrier();
  sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += sum_of_warp[warp];
  float* const result = y + static_cast<long>(block_x()) * columns;
  for (int i = thread(); i < columns; i += threads())
    result[i] = __nvvm_ex2_approx_f((row[i] - largest) * kLog2E) / sum;
}

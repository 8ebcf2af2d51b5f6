#pragma once
#include <cstdint>

namespace fullbore::cpu {

/// Memory that will be read soon, asked for line by line while something is computed that leaves the memory
/// idle: up to two matrices, row by row, in order.
class Prefetcher {
 public:
  /// A third matrix would take the place of the second.
  void add(const void* data, int64_t rows, int64_t row_bytes, int64_t stride_bytes) {
    if (rows <= 0 || row_bytes <= 0) return;
    if (row_bytes == stride_bytes) {
      row_bytes *= rows;
      rows = 1;
    }
    const Matrix matrix{static_cast<const char*>(data), rows,
                        (row_bytes + kLineBytes - 1) / kLineBytes, stride_bytes};
    if (more())
      then_ = matrix;
    else
      begin(matrix);
  }

  bool more() const { return now_.rows > 0; }

  /// For the next line; once there are no more, for the last one again. Into the second cache, for the first
  /// one is full of what is at work.
  __attribute__((always_inline)) void ask() {
    __builtin_prefetch(line_, 0, 2);
    line_ += step_;
    if (--left_ == 0) [[unlikely]]
      turn();
  }

 private:
  static constexpr int64_t kLineBytes = 64;
  struct Matrix {
    const char* data = nullptr;
    int64_t rows = 0;
    int64_t lines = 0;  ///< of a row
    int64_t stride = 0;
  };

  void begin(const Matrix& matrix) {
    now_ = matrix;
    line_ = matrix.data;
    left_ = matrix.lines;
    step_ = kLineBytes;
  }
  void turn() {
    if (--now_.rows > 0) {
      line_ = now_.data += now_.stride;
      left_ = now_.lines;
    } else if (then_.rows > 0) {
      begin(then_);
      then_ = {};
    } else {
      line_ -= step_;
      step_ = 0;
    }
  }

  const char* line_ = nullptr;
  int64_t step_ = 0;
  int64_t left_ = 0;  ///< lines of the row
  Matrix now_;        ///< from the row at work on
  Matrix then_;
};

}  // namespace fullbore::cpu

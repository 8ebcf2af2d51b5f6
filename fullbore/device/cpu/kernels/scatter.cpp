#include "fullbore/device/cpu/kernels/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

// Items that keep a dozen workers busy, and the fewest columns that are worth reading an index for.
constexpr int64_t kItems = 16;
constexpr int64_t kFewestColumns = 32;

/// A block of the destination that one item sums into: in place, or in f32 scratch of its own and
/// rounded at the end if elements are narrower than sums.
template <class T>
struct Destination {
  static constexpr bool kInPlace = sizeof(T) == sizeof(Sum<T>);
  using Cell = std::conditional_t<kInPlace, T, Sum<T>>;
  Cell* cells = nullptr;  ///< [rows, stride]
  int64_t stride = 0;

  /// `y` is the block's first element in place of `stride` elements per row.
  Destination(T* y, int64_t y_stride, Sum<T>* scratch, int64_t rows, int64_t columns)
      : stride(kInPlace ? y_stride : columns) {
    if constexpr (kInPlace)
      cells = y;
    else
      cells = scratch;
    if (stride == columns) {  // one call: rows may be single elements
      columns *= rows;
      rows = 1;
    }
    for (int64_t row = 0; row < rows; ++row)
      std::memset(cells + row * stride, 0, static_cast<size_t>(columns) * sizeof(Cell));
  }
  void add(int64_t at, T update) const {
    if constexpr (kInPlace)
      cells[at] = store<T>(load(cells[at]) + load(update));
    else
      cells[at] += load(update);
  }
  void finish(T* y, int64_t y_stride, int64_t rows, int64_t columns) const {
    if constexpr (!kInPlace)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          y[row * y_stride + column] = store<T>(cells[row * columns + column]);
  }
};

template <class T>
int64_t scratch_for(int64_t cells, int workers) {
  if (Destination<T>::kInPlace) return 0;
  return round_up(cells * static_cast<int64_t>(sizeof(Sum<T>)), 64) * workers;
}

template <class T>
Sum<T>* scratch_of(void* scratch, int64_t cells, int worker) {
  if (Destination<T>::kInPlace) return nullptr;
  const int64_t bytes = round_up(cells * static_cast<int64_t>(sizeof(Sum<T>)), 64);
  return reinterpret_cast<Sum<T>*>(static_cast<char*>(scratch) + bytes * worker);
}

/// updates [count, width], indices [count] -> y [rows, width]. An item owns a block of y, some rows
/// by some columns, and reads all indices. Columns balance better (tokens are not equally common) but
/// each block of them reads every index again; so does each block of rows.
template <class Index, class T>
class ScatterAddKernel final : public CpuKernel {
 public:
  ScatterAddKernel(const TensorType& indices, const TensorType& y)
      : count_(indices.elements()),
        rows_{y.shape[0], 1},
        columns_{y.shape.slice(1, y.shape.rank()).elements(), 1},
        text_(fmt::format("scatter_add {} [{}]", y.text(), count_)) {
    const int64_t column_blocks = std::clamp<int64_t>(columns_.count / kFewestColumns, 1, kItems);
    columns_.size = std::max<int64_t>(1, divide_up(columns_.count, column_blocks));
    // Reading an index costs as much as adding three or so elements.
    const int64_t row_blocks = std::clamp<int64_t>(
        std::min(kItems / column_blocks, columns_.size / 12), 1, std::max<int64_t>(1, rows_.count));
    rows_.size = std::max<int64_t>(1, divide_up(rows_.count, row_blocks));
  }

  int64_t items() const override { return rows_.parts() * columns_.parts(); }
  double nanoseconds() const override {
    const double added = static_cast<double>(count_ * columns_.count * 3) * sizeof(T);
    const double cleared = static_cast<double>(rows_.count * columns_.count) * sizeof(T);
    return (added + cleared) / kBytesPerNanosecond + static_cast<double>(count_ * items());
  }
  int64_t scratch_bytes(int workers) const override {
    return scratch_for<T>(rows_.size * columns_.size, workers);
  }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Sum<T>* scratch =
        scratch_of<T>(buffers[scratch_bytes(1) > 0 ? 3 : 2], rows_.size * columns_.size, worker);
    for (int64_t item = begin; item < end; ++item)
      run_block(static_cast<const T*>(buffers[0]), static_cast<const Index*>(buffers[1]),
                static_cast<T*>(buffers[2]), scratch, item / columns_.parts(),
                item % columns_.parts());
  }

 private:
  void run_block(const T* updates, const Index* indices, T* y, Sum<T>* scratch, int64_t row_block,
                 int64_t column_block) const {
    const int64_t width = columns_.count;
    const int64_t first_row = rows_.begin(row_block);
    const int64_t rows = rows_.end(row_block) - first_row;
    const int64_t first_column = columns_.begin(column_block);
    const int64_t columns = columns_.end(column_block) - first_column;
    T* block = y + first_row * width + first_column;
    const Destination<T> destination(block, width, scratch, rows, columns);
    for (int64_t i = 0; i < count_; ++i) {
      const auto index = static_cast<int64_t>(indices[i]);  // NOLINT(bugprone-signed-char-misuse)
      if (index < first_row || index >= first_row + rows) continue;
      const int64_t row = index - first_row;
      const T* update = updates + i * width + first_column;
      for (int64_t column = 0; column < columns; ++column)
        destination.add(row * destination.stride + column, update[column]);
    }
    destination.finish(block, width, rows, columns);
  }

  int64_t count_;
  Blocks rows_;
  Blocks columns_;
  std::string text_;
};

/// updates and indices [outer, count, inner] -> y [outer, extent, inner]. An item owns all of the
/// axis for some outer or, where those are few, some inner indices.
template <class Index, class T>
class ScatterAlongAxisKernel final : public CpuKernel {
 public:
  ScatterAlongAxisKernel(const TensorType& updates, const TensorType& y, int64_t axis)
      : view_(updates.shape, axis),
        target_(y.shape, axis),
        outer_{target_.outer, 1},
        inner_{target_.inner, 1},
        text_(fmt::format("scatter_along_axis {} {}", updates.shape.text(), y.text())) {
    const auto row_bytes =
        static_cast<int64_t>(sizeof(T)) * (target_.extent + view_.extent) * target_.inner;
    outer_.size = std::max<int64_t>(1, kItemBytes / std::max<int64_t>(1, row_bytes));
    const int64_t inner_blocks =
        outer_.count >= kItems ? 1 : std::clamp<int64_t>(inner_.count / kFewestColumns, 1, kItems);
    inner_.size = std::max<int64_t>(1, divide_up(inner_.count, inner_blocks));
  }

  int64_t items() const override {
    return target_.elements() == 0 ? 0 : outer_.parts() * inner_.parts();
  }
  double nanoseconds() const override {
    return static_cast<double>(view_.elements()) * 1.5 +
           static_cast<double>(target_.elements()) * sizeof(T) / kBytesPerNanosecond;
  }
  int64_t scratch_bytes(int workers) const override {
    return scratch_for<T>(target_.extent * inner_.size, workers);
  }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Sum<T>* scratch =
        scratch_of<T>(buffers[scratch_bytes(1) > 0 ? 3 : 2], target_.extent * inner_.size, worker);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item / inner_.parts();
      for (int64_t o = outer_.begin(block); o < outer_.end(block); ++o)
        run_block(static_cast<const T*>(buffers[0]), static_cast<const Index*>(buffers[1]),
                  static_cast<T*>(buffers[2]), scratch, o, item % inner_.parts());
    }
  }

 private:
  void run_block(const T* updates, const Index* indices, T* y, Sum<T>* scratch, int64_t o,
                 int64_t inner_block) const {
    const int64_t first = inner_.begin(inner_block);
    const int64_t columns = inner_.end(inner_block) - first;
    T* block = y + o * target_.extent * target_.inner + first;
    const Destination<T> destination(block, target_.inner, scratch, target_.extent, columns);
    for (int64_t i = 0; i < view_.extent; ++i) {
      const int64_t row = (o * view_.extent + i) * view_.inner + first;
      for (int64_t n = 0; n < columns; ++n) {
        const auto index =
            static_cast<int64_t>(indices[row + n]);  // NOLINT(bugprone-signed-char-misuse)
        if (index >= 0 && index < target_.extent)
          destination.add(index * destination.stride + n, updates[row + n]);
      }
    }
    destination.finish(block, target_.inner, target_.extent, columns);
  }

  Axis view_;
  Axis target_;
  Blocks outer_;
  Blocks inner_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_scatter_add(KernelRequest& request) {
  return with_index(request.input(1).dtype, [&](auto index) {
    return with_numeric(request.input(0).dtype, [&](auto element) -> std::unique_ptr<Kernel> {
      return std::make_unique<ScatterAddKernel<decltype(index), decltype(element)>>(
          request.input(1), request.output());
    });
  });
}

std::unique_ptr<Kernel> make_scatter_along_axis(KernelRequest& request) {
  return with_index(request.input(1).dtype, [&](auto index) {
    return with_numeric(request.input(0).dtype, [&](auto element) -> std::unique_ptr<Kernel> {
      return std::make_unique<ScatterAlongAxisKernel<decltype(index), decltype(element)>>(
          request.input(0), request.output(), request.attribute<int64_t>("axis"));
    });
  });
}

}  // namespace fullbore::cpu

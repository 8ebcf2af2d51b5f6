#include "fullbore/device/cpu/kernels/index_add.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kItems = 16;
constexpr int64_t kFewestColumns = 32;

/// base [rows, width], updates [count, width], indices [count] -> y [rows, width]. An item owns a block of columns.
template <class Index, class T>
class IndexAddKernel final : public CpuKernel {
 public:
  IndexAddKernel(const TensorType& base, const TensorType& indices)
      : count_(indices.elements()),
        rows_(base.shape[0]),
        columns_{base.shape.slice(1, base.shape.rank()).elements(), 1},
        text_(fmt::format("index_add {} [{}]", base.text(), count_)) {
    const int64_t blocks = std::clamp<int64_t>(columns_.count / kFewestColumns, 1, kItems);
    columns_.size = std::max<int64_t>(1, divide_up(columns_.count, blocks));
  }

  int64_t items() const override { return columns_.parts(); }
  double nanoseconds() const override {
    return static_cast<double>(count_ * columns_.count * 3) * sizeof(T) / kBytesPerNanosecond +
           static_cast<double>(count_ * (items() + 2));
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }
  bool may_alias(int input, int) const override { return input == 0; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const auto* base = static_cast<const T*>(buffers[0]);
    const auto* updates = static_cast<const T*>(buffers[1]);
    const auto* indices = static_cast<const Index*>(buffers[2]);
    auto* y = static_cast<T*>(buffers[3]);
    char* scratch = static_cast<char*>(buffers[4]) + worker_bytes() * worker;
    auto* sums = reinterpret_cast<Sum<T>*>(scratch);
    const Lists lists(*this, indices, reinterpret_cast<int64_t*>(scratch + sum_bytes()));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = columns_.begin(item), columns = columns_.end(item) - first;
      if (base != y) copy(base + first, y + first, columns);
      for (int64_t i = 0; i < count_; ++i) {
        const int64_t row = row_of(indices, i);
        if (row < 0 || lists.first[row] != i) continue;
        std::memset(sums, 0, static_cast<size_t>(columns) * sizeof(Sum<T>));
        for (int64_t each = i; each >= 0; each = lists.next[each])
          add(updates + each * columns_.count + first, columns, sums);
        T* to = y + row * columns_.count + first;
        for (int64_t column = 0; column < columns; ++column)
          to[column] = store<T>(load(to[column]) + sums[column]);
      }
    }
  }

 private:
  /// The updates of each row that has any, in their order.
  struct Lists {
    int64_t* first;  ///< [rows], of a row without updates whatever was there
    int64_t* next;   ///< [count], -1 behind the last

    Lists(const IndexAddKernel& kernel, const Index* indices, int64_t* scratch)
        : first(scratch), next(scratch + kernel.rows_) {
      for (int64_t i = 0; i < kernel.count_; ++i)
        if (const int64_t row = kernel.row_of(indices, i); row >= 0) first[row] = -1;
      for (int64_t i = kernel.count_ - 1; i >= 0; --i) {
        const int64_t row = kernel.row_of(indices, i);
        if (row < 0) continue;
        next[i] = first[row];
        first[row] = i;
      }
    }
  };

  // Or -1: an index out of range.
  int64_t row_of(const Index* indices, int64_t i) const {
    const auto row = static_cast<int64_t>(indices[i]);  // NOLINT(bugprone-signed-char-misuse)
    return row >= 0 && row < rows_ ? row : -1;
  }
  static void add(const T* update, int64_t columns, Sum<T>* sums) {
    for (int64_t column = 0; column < columns; ++column) sums[column] += load(update[column]);
  }
  void copy(const T* from, T* to, int64_t columns) const {
    for (int64_t row = 0; row < rows_; ++row)
      std::memcpy(to + row * columns_.count, from + row * columns_.count,
                  static_cast<size_t>(columns) * sizeof(T));
  }

  int64_t sum_bytes() const {
    return round_up(columns_.size * static_cast<int64_t>(sizeof(Sum<T>)), 64);
  }
  int64_t worker_bytes() const {
    return sum_bytes() + round_up((rows_ + count_) * static_cast<int64_t>(sizeof(int64_t)), 64);
  }

  int64_t count_;
  int64_t rows_;
  Blocks columns_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_index_add(KernelRequest& request) {
  return with_index(request.input(2).dtype, [&](auto index) {
    return with_numeric(request.input(0).dtype, [&](auto element) -> std::unique_ptr<Kernel> {
      return std::make_unique<IndexAddKernel<decltype(index), decltype(element)>>(request.input(0),
                                                                                  request.input(2));
    });
  });
}

}  // namespace fullbore::cpu

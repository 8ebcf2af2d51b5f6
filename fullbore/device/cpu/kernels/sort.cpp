#include "fullbore/device/cpu/kernels/sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kInsertionLimit = 32;

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// An unsigned number that is ordered as x is: ascending or descending, NaN the largest of all in
/// either case, zeros of both signs equal.
template <class T>
KeyOf<T> sort_key(T x, bool descending) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  const auto value = ordered(x);
  Key key = 0;
  if constexpr (std::is_floating_point_v<decltype(value)>) {
    if (std::isnan(value)) return ~Key{0};
    const auto bits = std::bit_cast<Key>(value + 0);  // -0 + 0 is +0
    key = (bits & kSign) != 0 ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<decltype(value)>) {
    key = static_cast<Key>(value) ^ kSign;
  } else {
    key = value;
  }
  return descending ? ~key : key;
}

template <class Key>
struct Entry {
  Key key;
  int32_t index;
};

template <class Key>
void insertion_sort(Entry<Key>* entries, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const Entry<Key> entry = entries[i];
    int64_t at = i;
    for (; at > 0 && entries[at - 1].key > entry.key; --at) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
}

/// Leaves the result in `entries` or `other` and returns which.
template <class Key>
Entry<Key>* radix_sort(Entry<Key>* entries, Entry<Key>* other, int64_t count) {
  for (unsigned shift = 0; shift < sizeof(Key) * 8; shift += 8) {
    int32_t places[256] = {};
    for (int64_t i = 0; i < count; ++i) ++places[(entries[i].key >> shift) & 255];
    if (places[(entries[0].key >> shift) & 255] == count) continue;
    int32_t next = 0;
    for (int32_t& place : places) {
      const int32_t size = place;
      place = next;
      next += size;
    }
    for (int64_t i = 0; i < count; ++i)
      other[places[(entries[i].key >> shift) & 255]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

/// x [rows, extent] -> values, indices [rows, extent]: an item sorts some rows.
template <class T>
class SortKernel final : public CpuKernel {
 public:
  using Key = KeyOf<T>;

  SortKernel(const TensorType& x, bool descending)
      : extent_(x.shape[x.shape.rank() - 1]),
        rows_{extent_ > 0 ? x.elements() / extent_ : 0,
              std::max<int64_t>(1, 512 / std::max<int64_t>(1, extent_))},
        descending_(descending),
        text_(fmt::format("sort {}", x.text())) {}

  int64_t items() const override { return rows_.parts(); }
  // Two nanoseconds per element and pass.
  double nanoseconds() const override {
    return static_cast<double>(rows_.count * extent_) * 2 * (sizeof(T) + 2);
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    auto* scratch =
        reinterpret_cast<Entry<Key>*>(static_cast<char*>(buffers[3]) + worker_bytes() * worker);
    for (int64_t row = rows_.begin(begin); row < rows_.end(end - 1); ++row)
      sort_row(static_cast<const T*>(buffers[0]) + row * extent_,
               static_cast<T*>(buffers[1]) + row * extent_,
               static_cast<int32_t*>(buffers[2]) + row * extent_, scratch);
  }

 private:
  int64_t worker_bytes() const {
    return round_up(2 * extent_ * static_cast<int64_t>(sizeof(Entry<Key>)), 64);
  }

  void sort_row(const T* x, T* values, int32_t* indices, Entry<Key>* scratch) const {
    for (int64_t i = 0; i < extent_; ++i)
      scratch[i] = {sort_key(x[i], descending_), static_cast<int32_t>(i)};
    const Entry<Key>* sorted = scratch;
    if (extent_ <= kInsertionLimit)
      insertion_sort(scratch, extent_);
    else
      sorted = radix_sort(scratch, scratch + extent_, extent_);
    for (int64_t i = 0; i < extent_; ++i) {
      indices[i] = sorted[i].index;
      values[i] = x[sorted[i].index];
    }
  }

  int64_t extent_;
  Blocks rows_;
  bool descending_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_sort(KernelRequest& request) {
  return with_numeric(request.input(0).dtype, [&](auto element) -> std::unique_ptr<Kernel> {
    return std::make_unique<SortKernel<decltype(element)>>(request.input(0),
                                                           request.attribute<bool>("descending"));
  });
}

}  // namespace fullbore::cpu

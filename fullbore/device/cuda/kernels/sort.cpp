// Stable sort along the last axis by a bitonic network (Batcher 1968): a block a row. Entries carry the place that their
// element came from, so that no two are equal and the order is that of a stable sort.
#include "fullbore/device/cuda/kernels/elements.h"

namespace {

constexpr int kLastPlace = 0x7fffffff;  ///< of entries that fill the row up

// An unsigned number that is ordered as x is: ascending or descending, NaN the largest of all in either case, zeros of
// both signs equal.
FB_DEVICE unsigned key_of(float x, bool descending) {
  if (!(x == x)) return ~0U;
  const unsigned bits = __builtin_bit_cast(unsigned, x + 0.0F);  // -0 + 0 is +0
  const unsigned key = (bits >> 31) != 0 ? ~bits : bits | 1U << 31;
  return descending ? ~key : key;
}
FB_DEVICE unsigned key_of(Bf16 x, bool descending) { return key_of(load(x), descending); }
FB_DEVICE unsigned key_of(F16 x, bool descending) { return key_of(load(x), descending); }
FB_DEVICE unsigned key_of(int x, bool descending) {
  const unsigned key = static_cast<unsigned>(x) ^ 1U << 31;
  return descending ? ~key : key;
}
FB_DEVICE unsigned key_of(unsigned char x, bool descending) {
  return key_of(static_cast<int>(x), descending);
}
FB_DEVICE unsigned key_of(signed char x, bool descending) {
  return key_of(static_cast<int>(x), descending);
}
FB_DEVICE unsigned long key_of(double x, bool descending) {
  if (!(x == x)) return ~0UL;
  const auto bits = __builtin_bit_cast(unsigned long, x + 0.0);
  const unsigned long key = (bits >> 63) != 0 ? ~bits : bits | 1UL << 63;
  return descending ? ~key : key;
}
FB_DEVICE unsigned long key_of(long x, bool descending) {
  const unsigned long key = static_cast<unsigned long>(x) ^ 1UL << 63;
  return descending ? ~key : key;
}

/// Keys of 32 bits and places as one number; keys of 64 bits beside them.
struct NarrowEntry {
  unsigned long both;
  FB_DEVICE NarrowEntry(unsigned key, int place)
      : both(static_cast<unsigned long>(key) << 32 | static_cast<unsigned>(place)) {}
  FB_DEVICE NarrowEntry() {}
  FB_DEVICE bool operator<(const NarrowEntry& other) const { return both < other.both; }
  FB_DEVICE int place() const { return static_cast<int>(both & 0xffffffffUL); }
};
struct WideEntry {
  unsigned long key;
  long place_;
  FB_DEVICE WideEntry(unsigned long of_key, int place) : key(of_key), place_(place) {}
  FB_DEVICE WideEntry() {}
  FB_DEVICE bool operator<(const WideEntry& other) const {
    return key < other.key || (key == other.key && place_ < other.place_);
  }
  FB_DEVICE int place() const { return static_cast<int>(place_); }
};
template <class Key>
struct EntryOf {
  using Type = NarrowEntry;
};
template <>
struct EntryOf<unsigned long> {
  using Type = WideEntry;
};

/// Sorts `size` entries, a power of two, of one row.
template <class Entry>
FB_DEVICE void sort_entries(Entry* entries, int size) {
  for (int run = 2; run <= size; run *= 2)
    for (int distance = run / 2; distance > 0; distance /= 2) {
      barrier();
      for (int pair = thread(); pair < size / 2; pair += threads()) {
        const int low = 2 * pair - (pair & (distance - 1)), high = low + distance;
        const Entry a = entries[low], b = entries[high];
        if ((b < a) == ((low & run) == 0)) {
          entries[low] = b;
          entries[high] = a;
        }
      }
    }
  barrier();
}

constexpr int kSharedBytes = 32 << 10;

// x [rows, extent] -> values, places [rows, extent]; `size`: extent up to a power of two. `scratch` [rows, size] entries
// where a row does not fit shared memory, else null.
template <class T>
FB_DEVICE void sort_row(const T* x, T* values, int* places, void* scratch, int extent, int size,
                        bool descending) {
  using Entry = typename EntryOf<decltype(key_of(T{}, false))>::Type;
  FB_SHARED static __attribute__((aligned(16))) unsigned char shared[kSharedBytes];
  const long row = block_x();
  Entry* const entries = scratch != nullptr ? static_cast<Entry*>(scratch) + row * size
                                            : reinterpret_cast<Entry*>(shared);
  const T* const from = x + row * extent;
  for (int i = thread(); i < size; i += threads())
    entries[i] = i < extent ? Entry(key_of(from[i], descending), i)
                            : Entry(static_cast<decltype(key_of(T{}, false))>(-1), kLastPlace);
  sort_entries(entries, size);
  for (int i = thread(); i < extent; i += threads()) {
    const int place = entries[i].place();
    places[row * extent + i] = place;
    values[row * extent + i] = from[place];
  }
}

}  // namespace

#define FB_SORT(T, SUFFIX)                                                                    \
  FB_KERNEL void sort_##SUFFIX(const T* x, T* values, int* places, void* scratch, int extent, \
                               int size, int descending) {                                    \
    sort_row(x, values, places, scratch, extent, size, descending != 0);                      \
  }
FB_FOR_NUMBERS(FB_SORT)

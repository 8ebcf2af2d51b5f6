#include "fullbore/base/tensor_memory.h"

#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fullbore {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Whole huge pages are not asked for: one half used would be memory that no plan knows of.
TensorMemory map(size_t bytes) {
  const size_t size = rounded_up(bytes, 4096);
  void* const mapped =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  // What lies before and behind the aligned part goes back.
  char* const begin = static_cast<char*>(mapped);
  const size_t before = rounded_up(reinterpret_cast<uintptr_t>(begin), kHugePage) -
                        reinterpret_cast<uintptr_t>(begin);
  if (before > 0) (void)::munmap(begin, before);
  if (before < kHugePage) (void)::munmap(begin + before + size, kHugePage - before);
#ifdef MADV_HUGEPAGE
  // A wish: where it is refused small pages serve.
  (void)::madvise(begin + before, size / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return TensorMemory(begin + before, {size});
}

}  // namespace

void FreeTensorMemory::operator()(char* memory) const {
  if (mapped_bytes > 0)
    (void)::munmap(memory, mapped_bytes);
  else
    std::free(memory);
}

TensorMemory allocate_tensor_memory(int64_t bytes) {
  const auto size = std::max(kAlignment, rounded_up(static_cast<size_t>(bytes), kAlignment));
  if (size >= 2 * kHugePage) return map(size);
  void* memory = nullptr;
  if (::posix_memalign(&memory, kAlignment, size) != 0) return nullptr;
  std::memset(memory, 0, size);
  return TensorMemory(static_cast<char*>(memory));
}

void choose_pages(char* memory, int64_t bytes, bool large) {
#ifdef MADV_HUGEPAGE
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 0));
  if (size < 2 * kHugePage) return;  // of the heap, perhaps: it is others' when it is given back
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const size_t before = rounded_up(address, kHugePage) - address;
  (void)::madvise(memory + before, (size - before) / kHugePage * kHugePage,
                  large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
}

bool is_zero(const char* memory, int64_t bytes) {
  // Equal to itself moved by one, and the first one is zero.
  return bytes == 0 ||
         (memory[0] == 0 && std::memcmp(memory, memory + 1, static_cast<size_t>(bytes) - 1) == 0);
}

#if defined(__x86_64__)
void copy_past_caches(char* to, const char* from, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine);
  const int64_t before = std::min(bytes, (kLine - past_line) % kLine);
  std::memcpy(to, from, static_cast<size_t>(before));
  int64_t at = before;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i quarters[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                                _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, quarters[i]);
  }
  std::memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
  _mm_sfence();  // such stores are ordered by nothing else
}
#else
// C++ has no stores past the caches; the C library's copy chooses what suits the size.
void copy_past_caches(char* to, const char* from, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
}
#endif

}  // namespace fullbore

#include "fullbore/base/tensor_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fullbore {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace

void FreeTensorMemory::operator()(char* memory) const { std::free(memory); }

TensorMemory allocate_tensor_memory(int64_t bytes) {
  const bool huge = bytes >= 2 * kHugePage;
  const int64_t alignment = huge ? kHugePage : kAlignment;
  // To whole cache lines only: a huge page half used would be memory that no plan knows of.
  const auto size =
      static_cast<size_t>(std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  void* memory = nullptr;
  if (::posix_memalign(&memory, static_cast<size_t>(alignment), size) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  // A wish: where it is refused small pages serve.
  if (huge) (void)::madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  std::memset(memory, 0, size);
  return TensorMemory(static_cast<char*>(memory));
}

}  // namespace fullbore

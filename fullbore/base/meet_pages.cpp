#include "fullbore/base/meet_pages.h"

#include "fullbore/base/tensor_memory.h"

namespace fullbore {

void meet_pages(char* memory, int64_t bytes, ThreadPool& pool) {
  constexpr int64_t kPage = 4096;
  pool.parallel_for((bytes + kPage - 1) / kPage, [&](int64_t begin, int64_t end) {
    for (int64_t page = begin; page < end; ++page) meet_page(memory + page * kPage);
  });
}

}  // namespace fullbore

#include "fullbore/base/unused_memory.h"

#include <link.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace fullbore {
namespace {

/// A part of a library as it is mapped.
struct Segment {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

Segment segment(const dl_phdr_info& library, const ElfW(Phdr) & header) {
  const uintptr_t begin = library.dlpi_addr + header.p_vaddr;
  return {begin, begin + header.p_memsz};
}

bool holds(const dl_phdr_info& library, uintptr_t address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library.dlpi_phdr[i];
    const Segment part = segment(library, header);
    if (header.p_type == PT_LOAD && part.begin <= address && address < part.end) return true;
  }
  return false;
}

int release(dl_phdr_info* library, size_t, void* code) {
  if (!holds(*library, reinterpret_cast<uintptr_t>(code))) return 0;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    // What was relocated or written is in no file.
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0) continue;
    const Segment part = segment(*library, header);
    const uintptr_t begin = part.begin / page * page;
    // Where it is refused, the pages stay.
    (void)madvise(reinterpret_cast<void*>(begin), part.end - begin, MADV_DONTNEED);
  }
  return 1;
}

}  // namespace

void release_library_pages(const void* code) { dl_iterate_phdr(release, const_cast<void*>(code)); }

void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace fullbore

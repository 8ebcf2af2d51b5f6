#include "fullbore/base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "fullbore/base/hash.h"

namespace fullbore {
namespace {

size_t rounded_up(size_t bytes) { return (bytes + 3) / 4 * 4; }

/// The contents of the note "GNU" of type NT_GNU_BUILD_ID among so many bytes of notes, or "".
std::string_view build_id_of(const char* notes, size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const size_t name_at = sizeof(header);
    const size_t id_at = name_at + rounded_up(header.n_namesz);
    const size_t end = id_at + rounded_up(header.n_descsz);
    if (end > bytes) return "";
    if (header.n_type == NT_GNU_BUILD_ID &&
        std::string_view(notes + name_at, header.n_namesz) == std::string_view("GNU", 4))
      return {notes + id_at, header.n_descsz};
    notes += end;
    bytes -= end;
  }
  return "";
}

struct Collected {
  std::string ids;
  bool complete = true;
};

int collect(dl_phdr_info* object, size_t, void* opaque) {
  auto& collected = *static_cast<Collected*>(opaque);
  std::string_view id;
  for (int i = 0; i < object->dlpi_phnum && id.empty(); ++i)
    if (const ElfW(Phdr)& part = object->dlpi_phdr[i]; part.p_type == PT_NOTE)
      id = build_id_of(reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr),
                       part.p_memsz);
  collected.ids += id;
  collected.complete &= !id.empty();
  return 0;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    Collected collected;
    dl_iterate_phdr(collect, &collected);
    return collected.complete
               ? hash_hex(hash_text(collected.ids)) + hash_hex(hash_text(collected.ids, 1))
               : "";
  }();
  return id;
}

}  // namespace fullbore

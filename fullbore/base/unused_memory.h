#pragma once

namespace fullbore {

/// Lets go of the resident pages of the shared library that `code` lies in, but for those that can be written. What is
/// executed or read again comes back from its file.
void release_library_pages(const void* code);

/// Gives back to the system what the allocator holds and nobody uses.
void release_free_memory();

}  // namespace fullbore

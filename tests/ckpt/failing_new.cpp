#include "tests/ckpt/failing_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int64_t left = -1;  // allocations until the failing one; -1: none fails
thread_local bool fails_for_good = false;
thread_local bool has_failed = false;

void* allocate(std::size_t bytes) {
  if (left == 0) {
    has_failed = true;
    if (!fails_for_good) left = -1;
    throw std::bad_alloc();
  }
  if (left > 0) --left;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
// All forms: a sanitizer's own would stand in for those left out, and its memory is not ours to free.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace fullbore::testing {

FailingNew::FailingNew(int64_t n, bool for_good) {
  has_failed = false;
  fails_for_good = for_good;
  left = n;
}
FailingNew::~FailingNew() { left = -1; }
bool FailingNew::reached() const { return has_failed; }

}  // namespace fullbore::testing

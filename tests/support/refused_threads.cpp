#include "tests/support/refused_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<bool> refusing{false};
std::atomic<int> allowed_threads{0};
std::atomic<int> refused_threads{0};

}  // namespace

// In place of the library's, for whoever asks: std::thread among them.
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
    void* argument) noexcept {
  if (refusing && allowed_threads.fetch_sub(1) <= 0) {
    ++refused_threads;
    return EAGAIN;
  }
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, start, argument);
}

namespace fullbore::testing {

RefusedThreads::RefusedThreads(int allowed) {
  allowed_threads = allowed;
  refused_threads = 0;
  refusing = true;
}

RefusedThreads::~RefusedThreads() { refusing = false; }

int RefusedThreads::refused() const { return refused_threads; }

}  // namespace fullbore::testing

// An input that takes a second of the processor has failed, however busy the machine is: the clock, by which libFuzzer
// would judge, also counts the time of others. Linked so that libFuzzer calls this and this calls the target.
#include <sys/time.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): names of the linker's option --wrap
int __real_LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int __wrap_LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // libFuzzer keeps the input at SIGABRT, and the trace says where the time went.
  static const bool ready = std::signal(SIGPROF, [](int) { std::abort(); }) != SIG_ERR;
  if (!ready) std::abort();
  const itimerval limit{{0, 0}, {1, 0}};
  const itimerval none{};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  const int result = __real_LLVMFuzzerTestOneInput(data, size);
  ::setitimer(ITIMER_PROF, &none, nullptr);
  return result;
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"

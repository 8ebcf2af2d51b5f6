# What ctest sets before it runs anything, where nobody has set it: options of the sanitizers, for every test and every
# program that a test starts.

# AddressSanitizer of GCC 12 takes memory of thread_local variables in a loaded library for that of glibc 2.19 wherever it
# happens to begin 16 bytes into a page, reads a length in front of it that is not there, and LeakSanitizer crashes on it:
# "Tracer caught signal 11" (https://github.com/google/sanitizers/issues/1322). It has no use for what it reads.
if(NOT DEFINED ENV{ASAN_OPTIONS})
  set(ENV{ASAN_OPTIONS} intercept_tls_get_addr=0)
endif()
if(NOT DEFINED ENV{UBSAN_OPTIONS})
  set(ENV{UBSAN_OPTIONS} print_stacktrace=1)
endif()
if(NOT DEFINED ENV{TSAN_OPTIONS})
  set(ENV{TSAN_OPTIONS} halt_on_error=1)
endif()

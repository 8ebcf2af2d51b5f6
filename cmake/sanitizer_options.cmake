# Options of the sanitizers for every test and every program that a test starts: ctest reads this before it runs anything. What
# the environment has already comes last, and so has the last word.

# AddressSanitizer of GCC 12 takes the memory of a loaded library's thread_local variables for that of glibc 2.19 wherever it
# begins 16 bytes into a page. It reads a length in front of it that is not there, and LeakSanitizer crashes on that: "Tracer
# caught signal 11" (https://github.com/google/sanitizers/issues/1322). No later glibc has such a length, so nothing is lost.
set(ENV{ASAN_OPTIONS} "intercept_tls_get_addr=0:$ENV{ASAN_OPTIONS}")
set(ENV{UBSAN_OPTIONS} "print_stacktrace=1:$ENV{UBSAN_OPTIONS}")
set(ENV{TSAN_OPTIONS} "halt_on_error=1:$ENV{TSAN_OPTIONS}")

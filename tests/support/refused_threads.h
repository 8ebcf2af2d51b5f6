#pragma once

namespace fullbore::testing {

/// While it lives, the system starts `allowed` threads more and refuses all others with EAGAIN, as it does under
/// RLIMIT_NPROC, which root does not meet. For one test at a time.
class RefusedThreads {
 public:
  explicit RefusedThreads(int allowed);
  ~RefusedThreads();
  RefusedThreads(const RefusedThreads&) = delete;
  RefusedThreads& operator=(const RefusedThreads&) = delete;

  int refused() const;  ///< so far
};

}  // namespace fullbore::testing

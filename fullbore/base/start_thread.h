#pragma once
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace fullbore {

/// A thread that runs `work`. Where the system refuses one (RLIMIT_NPROC, pids.max of the control group, no memory for
/// its stack): DataError, exit code 3, that names `purpose` ("a loader") and what may be done. All threads of the
/// library are made here.
std::thread start_thread(const char* purpose, std::function<void()> work);

/// The same for a thread that no signal interrupts: they are for the threads that were there before.
std::thread start_quiet_thread(const char* purpose, std::function<void()> work);

/// `count` threads that run `work`, or fewer where the system refuses more: for work that the caller shares and could
/// do alone. Destroyed, they are waited for.
std::vector<std::jthread> start_helpers(size_t count, const std::function<void()>& work);

}  // namespace fullbore

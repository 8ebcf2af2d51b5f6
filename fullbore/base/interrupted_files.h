#pragma once
#include <memory>

#include "fullbore/base/file_system.h"

namespace fullbore {

/// system_files() for tests of interrupted calls: before each system call, `interrupts` says by the call's name ("fsync")
/// whether it ends with EINTR instead.
using InterruptsCall = bool (*)(const char* call);
std::unique_ptr<FileSystem> interrupted_files(InterruptsCall interrupts);

}  // namespace fullbore

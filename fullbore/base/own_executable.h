#pragma once

namespace fullbore {

/// What to execute to run this program once more: FULLBORE_LAUNCHER, with which a packed program (tools/pack) says what
/// it was started by, or else "/proc/self/exe". As long as the environment lives; safe behind fork() if it was called
/// before.
const char* own_executable();

}  // namespace fullbore

#pragma once

namespace fullbore {

/// The `fullbore` command: reads the arguments, runs the subcommand, and turns every failure into
/// one line `fullbore: <message>` on stderr and the exit code of base/error.h.
int run_command_line(int argc, const char* const* argv);

}  // namespace fullbore

#pragma once
#include <span>

#include "fullbore/app/workload.h"

namespace fullbore {

/// The `fullbore` command: reads the arguments, runs the subcommand, and turns every failure into one line
/// `fullbore: <message>` on stderr and the exit code of base/error.h. `own`: workloads that the program brings, beside
/// those that are registered already. A main() of one's own is
///
///     int main(int argc, char** argv) { return fullbore::app(argc, argv, {&my_workload, 1}); }
///
/// and has every command: examples/spring is such a program. own_model.h has a shorter way.
int app(int argc, const char* const* argv, std::span<const Workload> own = {});

}  // namespace fullbore

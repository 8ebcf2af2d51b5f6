#pragma once
#include <string_view>

namespace fullbore {

/// Writes all of `text` to the descriptor of a terminal, pipe or file, waiting where it takes no more at the
/// moment, also if it is non-blocking. Returns 0, or the errno of the write that failed; then a part may have
/// been written. A closed pipe is EPIPE and raises no signal, whatever the process does about SIGPIPE.
int write_stream(int descriptor, std::string_view text);

}  // namespace fullbore

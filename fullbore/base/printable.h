#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// Text of unknown origin as it may go to a terminal, a message or a log: control characters (C0, DEL,
/// C1), which move the cursor, recolour or rename a window, the characters of Unicode that reverse the
/// direction of a line, and bytes that are not UTF-8 become "\x1b". Line ends and tabs stay, everything
/// else too.
std::string printable(std::string_view text);

/// The same for a name within a line: line ends and tabs become "\n" and "\t".
std::string printable_name(std::string_view name);

}  // namespace fullbore

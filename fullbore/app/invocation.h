#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// The words that this process was started with, the program's name first; kept by app().
const std::vector<std::string>& command_line();
void keep_command_line(int argc, const char* const* argv);

/// One line that a shell reads as these words, each quoted where it must be. Control characters are written as
/// in $'\033' (bash, zsh, ksh), which a terminal does not obey.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace fullbore

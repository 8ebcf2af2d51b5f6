#pragma once
#include <string>
#include <vector>

#include "fullbore/app/command.h"

namespace fullbore {

/// Subcommands of `runs` in a file of their own.
void add_runs_compare_command(Command runs);
void add_runs_plot_command(Command runs);

/// Two columns for people, the first as wide as it must be.
std::string rows_text(const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace fullbore

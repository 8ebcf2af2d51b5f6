#pragma once
#include <string>
#include <vector>

#include "fullbore/base/error.h"

namespace fullbore {

/// A comparison that neither passed nor failed: `lab gate`, `eval --against`.
inline constexpr ExitCode kUndecided{7};

/// How the command ends. README.md has the same table.
struct ExitCodeDescription {
  int code;
  std::string meaning;
};

/// Every ExitCode of base/error.h, kUndecided, and the end by a closed pipe; ascending.
const std::vector<ExitCodeDescription>& exit_code_descriptions();

/// "   0  done", a line for each, for --help.
std::string exit_codes_text();

}  // namespace fullbore

#pragma once
#include <string>

namespace fullbore {

/// The line of model code that asked for something. Captured as a default argument, so that every
/// error and every node of a graph can name it. (std::source_location is missing in Clang 14.)
struct SourceLoc {
  const char* file = "";
  int line = 0;

  static constexpr SourceLoc here(const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
    return {file, line};
  }

  /// "models/example.cpp:88": the last two components of the path, or "" if unknown.
  std::string text() const;
};

}  // namespace fullbore

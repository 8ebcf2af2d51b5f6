#pragma once
#include <fmt/format.h>

#include <string>

#include "fullbore/base/source_loc.h"

namespace fullbore {

/// Prints expression, message and location to stderr and aborts: our bug, never the user's.
[[noreturn]] void check_failed(const char* expression, const std::string& message, SourceLoc loc);

/// Names what is being done (a pass, a compilation) in the report of a failed check.
class CheckContext {
 public:
  explicit CheckContext(std::string what);
  ~CheckContext();
  CheckContext(const CheckContext&) = delete;
  CheckContext& operator=(const CheckContext&) = delete;

 private:
  std::string what_;
  const CheckContext* outer_;
  friend void check_failed(const char*, const std::string&, SourceLoc);
};

}  // namespace fullbore

/// Internal invariant. Usage: FB_CHECK(a == b) or FB_CHECK(a == b, "a is {}", a).
#define FB_CHECK(condition, ...)                                          \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::fullbore::check_failed(#condition, ::fmt::format("" __VA_ARGS__), \
                               ::fullbore::SourceLoc::here());            \
  } while (false)

#include "fullbore/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {
thread_local const CheckContext* innermost_context = nullptr;
}  // namespace

std::string SourceLoc::text() const {
  if (line == 0) return "";
  const std::string path = file;
  size_t cut = path.rfind('/');
  if (cut != std::string::npos && cut > 0) cut = path.rfind('/', cut - 1);
  return fmt::format("{}:{}", cut == std::string::npos ? path : path.substr(cut + 1), line);
}

UsageError::UsageError(const std::string& message, SourceLoc loc)
    : Error(ExitCode::kUsage,
            loc.line == 0 ? message : fmt::format("{} ({})", message, loc.text())) {}

CheckContext::CheckContext(std::string what) : what_(std::move(what)), outer_(innermost_context) {
  innermost_context = this;
}

CheckContext::~CheckContext() { innermost_context = outer_; }

void check_failed(const char* expression, const std::string& message, SourceLoc loc) {
  std::fprintf(stderr, "fullbore: internal error at %s: %s%s%s\n", loc.text().c_str(), expression,
               message.empty() ? "" : ": ", message.c_str());
  for (const CheckContext* context = innermost_context; context; context = context->outer_)
    std::fprintf(stderr, "  while %s\n", context->what_.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace fullbore

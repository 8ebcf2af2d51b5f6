#include "fullbore/app/exit_codes.h"

#include <fmt/format.h>

#include <csignal>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

// A switch, so that the compiler asks for the words of a new code.
const char* meaning(ExitCode code) {
  switch (code) {
    case ExitCode::kOk: return "done";
    case ExitCode::kInternal: return "a bug of fullbore";
    case ExitCode::kUsage: return "usage: command line, configuration, shapes";
    case ExitCode::kData:
      return "files: missing, malformed, of another model; a full disk; standard output not "
             "writable";
    case ExitCode::kNumerical:
      return "numerical: loss or gradients not finite, beyond recovery; int8 above --gate; "
             "compared: worse";
    case ExitCode::kMemory: return "memory: the job does not fit";
    case ExitCode::kInterrupted:
      return "train: stopped by a signal, saved; the command to go on with is printed";
  }
  return "";
}

}  // namespace

const std::vector<ExitCodeDescription>& exit_code_descriptions() {
  static const std::vector<ExitCodeDescription> all = [] {
    std::vector<ExitCodeDescription> list;
    for (const ExitCode code : {ExitCode::kOk, ExitCode::kInternal, ExitCode::kUsage,
                                ExitCode::kData, ExitCode::kNumerical, ExitCode::kMemory})
      list.push_back({static_cast<int>(code), meaning(code)});
    list.push_back({static_cast<int>(kUndecided),
                    "compared: neither no worse nor worse, too few seeds or items"});
    list.push_back({static_cast<int>(ExitCode::kInterrupted), meaning(ExitCode::kInterrupted)});
    list.push_back(
        {128 + SIGPIPE, "the reader of standard output closed it: signal 13, no message"});
    list.push_back({128 + SIGTERM, "ended by signal 15, nothing saved; 130 by Ctrl-C, 137 killed"});
    return list;
  }();
  return all;
}

std::string exit_codes_text() {
  std::string text;
  for (const ExitCodeDescription& each : exit_code_descriptions())
    text += fmt::format("{}{:>4}  {}", text.empty() ? "" : "\n", each.code, each.meaning);
  return text;
}

}  // namespace fullbore

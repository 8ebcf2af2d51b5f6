#pragma once
#include <spdlog/logger.h>

#include <memory>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/monitor/console.h"

namespace fullbore {

/// A log whose lines go to the console as they are and, with time and level, to the end of the file
/// `path` ("" for the console alone). Levels: info, warn ("warning: " on the console), and debug,
/// which only the file gets. The console must outlive it.
Result<std::shared_ptr<spdlog::logger>> make_run_log(Console& console, const std::string& path);

}  // namespace fullbore

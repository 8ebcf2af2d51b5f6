#pragma once
#include <stdexcept>
#include <string>

#include "fullbore/base/source_loc.h"

namespace fullbore {

/// Exit codes of the command, one per class of failure; documented in README.md.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,     ///< a bug of ours
  kUsage = 2,        ///< command line, config, shapes
  kData = 3,         ///< input files: missing, malformed, truncated, of another model
  kNumerical = 4,    ///< non-finite values that recovery could not mend
  kMemory = 5,       ///< the job does not fit
  kInterrupted = 75  ///< stopped by a signal after saving; run again with --resume
};

/// Base of every failure that a user may see; `what()` is one complete sentence with its cure.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The user's mistake: a shape, dtype, axis or config value. Thrown while tracing or compiling.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::kUsage, message) {}
  /// Appends "(models/example.cpp:88)" when the location is known.
  UsageError(const std::string& message, SourceLoc loc);
};

/// The world's failure: a file that is missing, torn or malformed.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::kData, message) {}
};

/// Values stopped being finite and the policy says stop.
class NumericalError : public Error {
 public:
  explicit NumericalError(const std::string& message) : Error(ExitCode::kNumerical, message) {}
};

/// The plan does not fit in the memory allowed.
class MemoryError : public Error {
 public:
  explicit MemoryError(const std::string& message) : Error(ExitCode::kMemory, message) {}
};

}  // namespace fullbore

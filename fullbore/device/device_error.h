#pragma once
#include <string>

#include "fullbore/base/error.h"

namespace fullbore {

/// A device failed while it worked: a kernel touched memory that is not its own, the device was lost, its memory has an
/// error. What was saved before is whole: `--resume` continues from it. Exit code 6.
class DeviceError : public Error {
 public:
  static constexpr ExitCode kCode{6};
  explicit DeviceError(const std::string& message) : Error(kCode, message) {}
};

}  // namespace fullbore

#pragma once
#include <string>
#include <utility>
#include <variant>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {

/// Why an operation on the outside world failed: one sentence with path, offset, expected, found.
struct Failure {
  std::string message;
};

/// A value, or the reason why there is none. For files and other parts of the world, where failure
/// is an ordinary outcome that the caller must look at.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : content_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    FB_CHECK(ok(), "{}", error());
    return std::get<0>(content_);
  }
  const T& value() const& {
    FB_CHECK(ok(), "{}", error());
    return std::get<0>(content_);
  }
  T&& value() && {
    FB_CHECK(ok(), "{}", error());
    return std::get<0>(std::move(content_));
  }
  const std::string& error() const { return std::get<1>(content_).message; }

  /// The value, or a DataError with the reason.
  T take_or_throw() && {
    if (!ok()) throw DataError(error());
    return std::get<0>(std::move(content_));
  }

 private:
  std::variant<T, Failure> content_;
};

struct Nothing {};
/// Outcome of an operation that has no value.
using Status = Result<Nothing>;
inline Status success() { return Nothing{}; }

}  // namespace fullbore

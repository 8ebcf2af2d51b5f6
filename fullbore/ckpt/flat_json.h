#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore {

/// A value of a JSON text that is no object.
struct JsonValue {
  enum class Kind { kText, kUnsigned, kNumber, kOther };
  Kind kind = Kind::kOther;
  std::string text;     ///< a text; of the others how they are spelt, for messages
  uint64_t number = 0;  ///< kUnsigned
  double real = 0;      ///< kNumber and kUnsigned
};

/// The values of an object by their path of keys. Read event by event, without a tree: the usual
/// one allocates in its destructor, and out of memory that would end the process.
using FlatJson = std::map<std::vector<std::string>, JsonValue>;

/// Failure: no object, malformed, deeper than three objects, or a key met twice.
Result<FlatJson> parse_flat_json(std::string_view text);

/// The text in quotes, escaped; what is not UTF-8 becomes U+FFFD.
std::string quoted_json(std::string_view text);

}  // namespace fullbore

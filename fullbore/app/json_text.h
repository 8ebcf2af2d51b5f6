#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace fullbore {

/// JSON and a line end, as commands print it: what is not ASCII stands in escapes, so that no string of a stranger
/// steers a terminal, and bytes that are not UTF-8 are replaced. `indent` -1: on one line.
template <class Json>
std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace fullbore

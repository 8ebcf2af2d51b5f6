#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"

namespace fullbore {

/// What a JSON text may ask for. A tree takes up to about 100 bytes of memory per value.
struct JsonLimits {
  size_t bytes = size_t{64} << 20;  ///< length of the text
  size_t depth = 64;                ///< lists and objects within each other
  size_t values = 1'000'000;        ///< of all lists and objects together
};

/// The text (RFC 8259) as a tree. The one way in: JSON is parsed nowhere else, so every tree is shallow enough for
/// what walks it recursively. Failure: "line 3, byte 57: ..." with what is wrong there, or the limit that is passed.
Result<nlohmann::json> parse_json(std::string_view text, const JsonLimits& limits = {});
/// The same, with keys in the order of the text.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text,
                                                  const JsonLimits& limits = {});
/// The same as events, without a tree. Where `reader` stops, the Failure has no message: it knows why.
Status read_json_events(std::string_view text, nlohmann::json_sax<nlohmann::json>& reader,
                        const JsonLimits& limits = {});

/// A value for a message: cut where it is long, and without what lists and objects hold of lists and objects.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace fullbore

#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// The text as it stands in SVG, within elements and quoted attributes; control characters and bytes that are not UTF-8
/// stand in escapes.
std::string svg_text(std::string_view text);

}  // namespace fullbore

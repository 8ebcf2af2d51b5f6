#pragma once
#include <string>
#include <string_view>

namespace fullbore::long_context {

/// The text as it stands in SVG, within elements and quoted attributes; control characters become spaces.
std::string svg_text(std::string_view text);

}  // namespace fullbore::long_context

#include "fullbore/base/svg_text.h"

#include <string>

#include "fullbore/base/printable.h"

namespace fullbore {

std::string svg_text(std::string_view text) {
  std::string result;
  // A picture with a control character or bytes that are not UTF-8 is no XML, and is not shown at all.
  for (const char c : printable_name(text)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace fullbore

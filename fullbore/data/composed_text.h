#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// `text`, well-formed UTF-8, in Unicode's normalization form C: `text` itself where it has that form already, else what
/// is put into `buffer`. Stretches between characters that take part in no composition are copied, the others are
/// normalized by libutf8proc, with the tables of its version.
/// Source: Unicode Standard Annex 15, sections 1.2 and 9 (quick check).
std::string_view composed_text(std::string_view text, std::string& buffer);

}  // namespace fullbore

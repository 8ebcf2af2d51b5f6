#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// Text that arrives in pieces of bytes, as tokens are made, and is let through as soon as it can be
/// shown: in complete UTF-8 characters, and up to the first of some stop strings. What may yet turn
/// out to be the beginning of a stop string is held back.
class TextStream {
 public:
  /// `stops`: UTF-8; empty ones are ignored.
  explicit TextStream(std::vector<std::string> stops);

  /// What may be shown now. Bytes that are no UTF-8 whatever follows become U+FFFD, one for each.
  /// After a stop string, nothing.
  std::string push(std::string_view bytes);
  /// What was held back, at the end of the text; an unfinished character becomes U+FFFD.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::string release(bool everything);

  std::vector<std::string> stops_;
  std::string bytes_;  ///< not yet a complete character, at the end of text_
  std::string text_;   ///< valid, not yet shown
  bool stopped_ = false;
};

}  // namespace fullbore

#include "workloads/long_context/context_reader.h"

#include <algorithm>

namespace fullbore::long_context {

Continuation continue_text(ContextReader& reader, const Tokenizer& tokenizer, int64_t room,
                           const std::function<bool(const std::string&)>& enough) {
  Continuation made;
  for (int64_t count = 0; count < room && !enough(made.text); ++count) {
    if (!made.unread.empty()) reader.read(made.unread);
    made.unread.clear();
    const std::span<const float> logits = reader.logits();
    const auto likeliest = std::ranges::max_element(logits);
    const auto token = static_cast<int32_t>(likeliest - logits.begin());
    if (token == tokenizer.end_of_document()) break;
    tokenizer.append_bytes(token, made.text);
    made.unread = {token};
  }
  return made;
}

EncodedText encode_known(const Tokenizer& tokenizer, std::string_view text) {
  EncodedText encoded;
  for (;;) {
    text.remove_prefix(tokenizer.append_tokens(text, encoded.tokens));
    if (text.empty()) return encoded;
    size_t bytes = 1;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
    text.remove_prefix(bytes);
    ++encoded.unknown_characters;
  }
}

void cut_middle(std::vector<int32_t>& tokens, int64_t most) {
  const auto size = static_cast<int64_t>(tokens.size());
  if (most <= 0 || size <= most) return;
  const int64_t head = most - most / 2;
  tokens.erase(tokens.begin() + head, tokens.end() - most / 2);
}

}  // namespace fullbore::long_context

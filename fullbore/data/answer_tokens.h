#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fullbore/data/chat_template.h"

namespace fullbore {

/// Whether a row has the token that begins a text, before its anchor: never between anchor and answer.
enum class BosPolicy : uint8_t { kNo, kYes, kAuto };  ///< kAuto: only in rows without an anchor

/// That token, or -1 for a row without it. UsageError: kYes, and the tokenizer has none.
int32_t beginning_token(BosPolicy policy, const Tokenizer& tokenizer, bool has_anchor);

/// The tokens of an answer behind an anchor: those of both as one text, without those of the anchor alone, and then
/// `terminator`, unless it is -1. Text at the anchor's end and the answer are tokenised together, for a word may begin in
/// one and end in the other. Nothing follows the answer; padding is told by its length, for the token that pads may be the
/// terminator.
///
/// Failure: the anchor's tokens do not begin those of both, which the text says, with the token that changes; or
/// text that is not UTF-8, or outside the vocabulary.
Result<std::vector<int32_t>> answer_tokens(const Tokenizer& tokenizer,
                                           std::span<const ChatPiece> anchor,
                                           std::string_view answer, int32_t terminator);

}  // namespace fullbore

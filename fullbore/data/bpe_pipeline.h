#pragma once
#include <string>
#include <string_view>

#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/data/tokenizer_json.h"

namespace fullbore {

/// What a tokenizer.json says around its vocabulary: normalizer, pre-tokenizer, post-processor, decoder and the options of
/// its model. What is not listed here is refused by name:
///
///   normalizer      null, NFC
///   pre_tokenizer   ByteLevel by GPT-2's expression; Digits, one by one, and that; Split by an expression of
///                   pre_tokenizer.h, isolated, and ByteLevel without one; each alone or in a Sequence
///   post_processor  null, ByteLevel, TemplateProcessing with at most one special token before the text, a Sequence of these
///   decoder         null, ByteLevel
///
/// `beginning` becomes the text of the special token before a text, "" if there is none.
Status read_bpe_pipeline(const hugging_face_json::Members& top,
                         const hugging_face_json::Members& model, BpeSettings& settings,
                         std::string& beginning);

/// The members of a tokenizer.json from "normalizer" to "decoder", with what follows each.
std::string bpe_pipeline_json(const BpeVocabulary& vocabulary);

/// `text` in quotes, as JSON has it.
void append_json_text(std::string& json, std::string_view text);

}  // namespace fullbore

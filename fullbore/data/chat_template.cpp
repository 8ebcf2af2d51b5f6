#include "fullbore/data/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/data/unicode_classes.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr const char* kDates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";

bool is_llama(ChatFamily family) {
  return family == ChatFamily::kLlama3 || family == ChatFamily::kLlama31;
}

/// What the system turn says if the conversation has none; null: there is no such turn.
const char* system_by_default(ChatFamily family) {
  switch (family) {
    case ChatFamily::kLlama31: return "";
    case ChatFamily::kQwen2: return "You are a helpful assistant.";
    case ChatFamily::kQwen25:
      return "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
    case ChatFamily::kSmolLm2:
      return "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
    default: return nullptr;
  }
}

/// Without outer white space, as Python's str.strip() has it: the separators 1C to 1F are some there.
std::string_view trimmed(std::string_view text) {
  size_t begin = std::string_view::npos;
  size_t end = 0;
  size_t at = 0;
  decode_utf8(text, [&](char32_t c) {
    std::string bytes;
    append_utf8(bytes, c);
    const bool is_space =
        UnicodeClasses::instance().of(c) == CharacterClass::kSpace || (c >= 0x1C && c <= 0x1F);
    if (!is_space) {
      begin = std::min(begin, at);
      end = at + bytes.size();
    }
    at += bytes.size();
  });
  if (at < text.size()) return text;  // not UTF-8: refused when it becomes tokens
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin);
}

void add_header(ChatFamily family, const std::string& role, std::vector<ChatPiece>& pieces) {
  if (is_llama(family)) {
    pieces.push_back({"<|start_header_id|>", true});
    pieces.push_back({role});
    pieces.push_back({"<|end_header_id|>", true});
    pieces.push_back({"\n\n"});
  } else if (family != ChatFamily::kNone) {
    pieces.push_back({"<|im_start|>", true});
    pieces.push_back({role + "\n"});
  }
}

void add_turn(ChatFamily family, const std::string& role, std::string_view content,
              std::vector<ChatPiece>& pieces) {
  add_header(family, role, pieces);
  if (is_llama(family)) {
    std::string text(role == "system" && family == ChatFamily::kLlama31 ? kDates : "");
    pieces.push_back({text.append(trimmed(content))});
    pieces.push_back({"<|eot_id|>", true});
  } else if (family == ChatFamily::kNone) {
    pieces.push_back({std::string(content) + (content.ends_with('\n') ? "" : "\n")});
  } else {
    pieces.push_back({std::string(content)});
    pieces.push_back({"<|im_end|>", true});
    pieces.push_back({"\n"});
  }
}

void check(std::span<const ChatMessage> messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant")
      throw UsageError(fmt::format(
          "message {} has the role '{}'; system, user or assistant was expected", i, role));
    if (role == "system" && i > 0)
      throw UsageError(fmt::format("message {} is the system's, which was expected first", i));
  }
}

}  // namespace

const char* chat_family_name(ChatFamily family) {
  switch (family) {
    case ChatFamily::kNone: return "none";
    case ChatFamily::kLlama3: return "llama-3";
    case ChatFamily::kLlama31: return "llama-3.1";
    case ChatFamily::kChatMl: return "chatml";
    case ChatFamily::kQwen2: return "qwen2";
    case ChatFamily::kQwen25: return "qwen2.5";
    case ChatFamily::kSmolLm2: return "smollm2";
  }
  return "none";
}

std::string text_of(std::span<const ChatPiece> pieces) {
  std::string text;
  for (const ChatPiece& piece : pieces) text += piece.text;
  return text;
}

Result<std::vector<int32_t>> tokens_of(const Tokenizer& tokenizer,
                                       std::span<const ChatPiece> pieces) {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < pieces.size();) {
    if (pieces[at].is_special) {
      ids.push_back(tokenizer.special_token(pieces[at].text));
      if (ids.back() < 0)
        return Failure{fmt::format("the tokenizer has no special token '{}'", pieces[at].text)};
      ++at;
      continue;
    }
    std::string text;
    for (; at < pieces.size() && !pieces[at].is_special; ++at) text += pieces[at].text;
    const Result<std::vector<int32_t>> more = tokenizer.encode(text, SpecialTokens::kAsText);
    if (!more.ok()) return Failure{more.error()};
    ids.insert(ids.end(), more.value().begin(), more.value().end());
  }
  return ids;
}

ChatTemplate ChatTemplate::of(const Tokenizer& tokenizer) {
  const auto has = [&](std::initializer_list<const char*> texts) {
    return std::ranges::all_of(
        texts, [&](const char* text) { return tokenizer.special_token(text) >= 0; });
  };
  if (has({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}))
    return ChatTemplate(has({"<|eom_id|>"}) ? ChatFamily::kLlama31 : ChatFamily::kLlama3);
  if (!has({"<|im_start|>", "<|im_end|>"})) return ChatTemplate(ChatFamily::kNone);
  if (has({"<|fim_prefix|>"})) return ChatTemplate(ChatFamily::kQwen25);
  if (has({"<repo_name>", "<file_sep>"})) return ChatTemplate(ChatFamily::kSmolLm2);
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  const bool is_qwen = bpe != nullptr && bpe->vocabulary().settings.split == WordSplit::kQwen2;
  return ChatTemplate(is_qwen ? ChatFamily::kQwen2 : ChatFamily::kChatMl);
}

std::vector<ChatPiece> ChatTemplate::render(std::span<const ChatMessage> messages,
                                            bool generation_prompt) const {
  check(messages);
  std::vector<ChatPiece> pieces;
  if (is_llama(family_)) pieces.push_back({"<|begin_of_text|>", true});
  const bool has_system = !messages.empty() && messages[0].role == "system";
  if (const char* const text = system_by_default(family_); !has_system && text != nullptr)
    add_turn(family_, "system", text, pieces);
  for (const ChatMessage& message : messages)
    add_turn(family_, message.role, message.content, pieces);
  if (generation_prompt) add_header(family_, "assistant", pieces);
  return pieces;
}

std::vector<ChatPiece> ChatTemplate::assistant_header() const {
  const ChatMessage user[] = {{"user", "text"}};
  const std::vector<ChatPiece> without = render(user, false);
  std::vector<ChatPiece> with = render(user, true);
  with.erase(with.begin(), with.begin() + static_cast<std::ptrdiff_t>(without.size()));
  return with;
}

int32_t ChatTemplate::terminator(const Tokenizer& tokenizer) const {
  if (family_ == ChatFamily::kNone) return tokenizer.end_of_document();
  return tokenizer.special_token(is_llama(family_) ? "<|eot_id|>" : "<|im_end|>");
}

}  // namespace fullbore

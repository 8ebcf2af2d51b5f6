#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// How a family of models writes a conversation. Source: the chat templates published with Meta-Llama-3-8B-Instruct,
/// Llama-3.1-8B-Instruct, Qwen2-7B-Instruct, Qwen2.5-7B-Instruct and SmolLM2-135M-Instruct, without tools.
enum class ChatFamily : uint8_t {
  kNone,  ///< no turns: the messages one after another, a line end after each
  kLlama3,  ///< <|start_header_id|>role<|end_header_id|>, content without outer white space, <|eot_id|>
  kLlama31,  ///< the same, and always a system turn, which begins with two dates
  kChatMl,   ///< <|im_start|>role, content, <|im_end|>
  kQwen2,    ///< the same; this and the next two have a system turn of their own if there is none
  kQwen25,
  kSmolLm2,
};
const char* chat_family_name(ChatFamily family);  ///< "none", "llama-3", "llama-3.1", "chatml", ...

struct ChatMessage {
  std::string role;  ///< system, user or assistant
  std::string content;
};

/// A stretch of a rendered conversation: the text of a special token, or text that stays text whatever it looks like.
struct ChatPiece {
  std::string text;
  bool is_special = false;
  bool operator==(const ChatPiece&) const = default;
};

/// The text of pieces, one after another.
std::string text_of(std::span<const ChatPiece> pieces);
/// Their tokens; text between two special tokens is tokenised as one. Failure: text that is not UTF-8, or a special token
/// that the tokenizer lacks.
Result<std::vector<int32_t>> tokens_of(const Tokenizer& tokenizer,
                                       std::span<const ChatPiece> pieces);

/// Renders conversations in one family's way. Contents are text: no content can end its turn or begin another.
class ChatTemplate {
 public:
  explicit ChatTemplate(ChatFamily family) : family_(family) {}
  /// The family whose special tokens the tokenizer has.
  static ChatTemplate of(const Tokenizer& tokenizer);

  ChatFamily family() const { return family_; }

  /// With `generation_prompt` the header of the assistant's turn follows. UsageError: a role that is none, a system message
  /// that is not the first.
  std::vector<ChatPiece> render(std::span<const ChatMessage> messages,
                                bool generation_prompt) const;
  /// What a generation prompt adds to a conversation: render() with it minus render() without. Not what an empty turn of
  /// the assistant's looks like, which would be closed.
  std::vector<ChatPiece> assistant_header() const;

  /// The token that ends the assistant's turn: <|eot_id|>, <|im_end|>; without turns, the end of a document. -1: none.
  int32_t terminator(const Tokenizer& tokenizer) const;

 private:
  ChatFamily family_;
};

}  // namespace fullbore

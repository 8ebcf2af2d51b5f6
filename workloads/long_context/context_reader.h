#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/data/tokenizer.h"

namespace fullbore::long_context {

/// A model as the suite knows it: it reads tokens, and tells what it expects next. Whatever it is made
/// of keeps what it has read in memory that does not grow with it.
class ContextReader {
 public:
  virtual ~ContextReader() = default;
  /// Tokens that it sees at once; 0: however many there are.
  virtual int64_t context() const = 0;
  /// Forgets everything. Up to `room` tokens will be read after logits() has been asked for the first
  /// time: where it sees only so many, it leaves place for them.
  virtual void begin(int64_t room) = 0;
  /// The text goes on with these.
  virtual void read(std::span<const int32_t> tokens) = 0;
  /// Of every token of the vocabulary to come next; valid until the next call. Something has been read.
  virtual std::span<const float> logits() = 0;
};

/// What a model wrote.
struct Continuation {
  std::string text;
  std::vector<int32_t>
      unread;  ///< the last token, if there is one: it is read where the text goes on
};
/// What the model writes next, always its likeliest token (ties: the lower id), read back as it goes but
/// for the last: at most `room` tokens, until `enough` says so of the text, or the document ends.
Continuation continue_text(ContextReader& reader, const Tokenizer& tokenizer, int64_t room,
                           const std::function<bool(const std::string&)>& enough);

struct EncodedText {
  std::vector<int32_t> tokens;
  int64_t unknown_characters = 0;  ///< that the tokenizer has no token for; they are left out
};
/// Any text as far as the tokenizer can spell it.
EncodedText encode_known(const Tokenizer& tokenizer, std::string_view text);

/// At most `most` tokens (0: all): what is too much is taken out of the middle.
void cut_middle(std::vector<int32_t>& tokens, int64_t most);

}  // namespace fullbore::long_context

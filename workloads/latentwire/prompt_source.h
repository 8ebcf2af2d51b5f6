#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fullbore::latentwire {

/// A question about a context, with all answers that are right.
struct Prompt {
  std::string id;
  std::string context;               ///< "Context: ...\n"
  std::string question;              ///< "Question: ...\n"
  std::vector<std::string> answers;  ///< at least one; the first is trained on
  bool question_leads = false;       ///< where language models read it: before the context

  /// What language models read.
  std::string source() const { return question_leads ? question + context : context + question; }
};

/// What an encoder reads: at most `most` bytes. Of a longer prompt bytes in the middle of the context are left out, so that
/// the question stays; of a question that is longer by itself, its end.
struct EncoderText {
  std::string bytes;
  bool cut = false;
};
EncoderText encoder_text(const Prompt& prompt, bool question_first, int64_t most);

/// Prompts by number.
class PromptSource {
 public:
  virtual ~PromptSource() = default;
  virtual Prompt prompt(int64_t index) const = 0;
  virtual int64_t size() const = 0;
  virtual std::string about() const = 0;     ///< for people
  virtual std::string identity() const = 0;  ///< what a run is resumed with
  /// The largest `length` of any prompt's text: of its source, or of its first answer behind a space.
  using Length = std::function<int64_t(const std::string& text)>;
  virtual int64_t most_in_source(const Length& length) const = 0;
  virtual int64_t most_in_answer(const Length& length) const = 0;
};

/// Rows [first, first + size) of the attribute corpus `key`.
std::shared_ptr<const PromptSource> attribute_prompts(uint64_t key, int64_t first, int64_t size);

}  // namespace fullbore::latentwire

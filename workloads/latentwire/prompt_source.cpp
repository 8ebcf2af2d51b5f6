#include "workloads/latentwire/prompt_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/latentwire/attribute_corpus.h"

namespace fullbore::latentwire {
namespace {

class AttributePrompts : public PromptSource {
 public:
  AttributePrompts(uint64_t key, int64_t first, int64_t size)
      : key_(key), first_(first), size_(size) {}

  Prompt prompt(int64_t index) const override {
    const AttributeRow row = attribute_row(key_, static_cast<uint64_t>(first_ + index));
    return {
        fmt::format("{}-{}", key_, first_ + index), row.context(), row.question(), {row.answer()}};
  }
  int64_t size() const override { return size_; }
  std::string about() const override {
    return fmt::format("the attribute corpus {}, {} rows from {}", key_, size_, first_);
  }
  std::string identity() const override {
    return fmt::format("attribute corpus {} from {}, {} rows", key_, first_, size_);
  }
  // A row's parts are words of their own for each tokenizer of the corpus, so that the longest row is made of the longest.
  int64_t most_in_source(const Length& length) const override {
    AttributeRow longest;
    int64_t most_asked = 0;
    for (const auto& attributes : all_attributes()) {
      const auto text_length = [&](const AttributeRow::Attribute& each) {
        return length(fmt::format(" The {} is {}.", each.field, each.value));
      };
      longest.attributes.push_back(*std::ranges::max_element(attributes, {}, text_length));
      AttributeRow asked{{attributes.front()}, 0};
      if (const int64_t of_question = length(asked.question()); of_question > most_asked) {
        most_asked = of_question;
        longest.asked = longest.attributes.size() - 1;
      }
    }
    return length(longest.source());
  }
  int64_t most_in_answer(const Length& length) const override {
    int64_t most = 0;
    for (const auto& attributes : all_attributes())
      for (const AttributeRow::Attribute& each : attributes)
        most = std::max(most, length(" " + each.value));
    return most;
  }

 private:
  uint64_t key_;
  int64_t first_, size_;
};

}  // namespace

EncoderText encoder_text(const Prompt& prompt, bool question_first, int64_t most) {
  std::string context = prompt.context, question = prompt.question;
  const auto limit = static_cast<size_t>(most);
  EncoderText text;
  text.cut = context.size() + question.size() > limit;
  if (text.cut) {
    question.resize(std::min(question.size(), limit));
    const size_t kept = limit - question.size(), head = (kept + 1) / 2;
    context = context.substr(0, head) + context.substr(context.size() - (kept - head));
  }
  text.bytes = question_first ? question + context : context + question;
  return text;
}

std::shared_ptr<const PromptSource> attribute_prompts(uint64_t key, int64_t first, int64_t size) {
  return std::make_shared<AttributePrompts>(key, first, size);
}

}  // namespace fullbore::latentwire

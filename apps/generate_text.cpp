#include "apps/generate_text.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/language_model.h"

namespace fullbore {
namespace {

/// The prompt's tokens; an empty prompt becomes the end of a line before the text, or the first
/// character of the vocabulary where it has no lines.
std::vector<int32_t> prompt_tokens(const CharacterTokenizer& tokenizer, const std::string& prompt) {
  if (prompt.empty()) return {std::max(0, tokenizer.id(U'\n'))};
  Result<std::vector<int32_t>> tokens = tokenizer.encode(prompt);
  if (!tokens) throw UsageError("--prompt: " + tokens.error());
  return tokens.value();
}

}  // namespace

void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options) {
  TrainedModel model = load_model(run_or_checkpoint);
  const std::vector<int32_t> prompt = prompt_tokens(model.tokenizer, options.prompt);
  Team team(worker_count(model.config));
  Generator generator(model_logits(model.config, model.tokenizer.vocabulary_size()),
                      model.config.model.context, model.state, team, compile_options(model.config));
  std::fputs(options.prompt.c_str(), stdout);
  generator.generate(prompt, options.characters,
                     {.temperature = options.temperature, .top_k = options.top_k}, options.seed,
                     [&](int32_t token) {
                       const int32_t one[] = {token};
                       std::fputs(model.tokenizer.decode(one).take_or_throw().c_str(), stdout);
                       std::fflush(stdout);
                     });
  std::fputc('\n', stdout);
  if (std::fflush(stdout) != 0) throw DataError("cannot write the text to stdout");
}

}  // namespace fullbore

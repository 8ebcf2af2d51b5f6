#include "apps/generate_text.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/language_model.h"
#include "fullbore/train/text_stream.h"

namespace fullbore {
namespace {

/// The prompt's tokens; an empty prompt becomes the end of a document before the text, or of a line,
/// or the first token of the vocabulary where it has no lines.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  if (prompt.empty()) {
    if (tokenizer.end_of_document() >= 0) return {tokenizer.end_of_document()};
    const Result<std::vector<int32_t>> line_end = tokenizer.encode("\n");
    return line_end.ok() ? line_end.value() : std::vector<int32_t>{0};
  }
  Result<std::vector<int32_t>> tokens = tokenizer.encode(prompt);
  if (!tokens) throw UsageError("--prompt: " + tokens.error());
  return tokens.value();
}

/// A token of a small model is too little work to share: waiting for one another costs more.
int decode_workers(const Config& config, const State& state) {
  constexpr int64_t kWorthSharing = int64_t{32} << 20;
  return config.engine.threads > 0 || state.bytes() >= kWorthSharing ? worker_count(config) : 1;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// One text: the first is printed as it comes, the others are kept for later.
struct Sample {
  TextStream stream;
  std::string kept;
  bool live;

  void add(const std::string& text) { live ? print(text) : void(kept += text); }
};

}  // namespace

void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options) {
  TrainedModel model = load_model(run_or_checkpoint, options.samples);
  const std::vector<int32_t> prompt = prompt_tokens(*model.tokenizer, options.prompt);
  const int64_t tokens = model.tokenizer->vocabulary_size();
  const GeneratorSizes sizes = generator_sizes(model.config, tokens, options.samples);
  if (static_cast<int64_t>(prompt.size()) > sizes.context)
    fmt::print(stderr, "the prompt has {} tokens, the model sees the last {} of them\n",
               prompt.size(), sizes.context);
  Team team(decode_workers(model.config, model.state));
  Generator generator(model_decode(model.config, tokens), sizes, model.state, team,
                      compile_options(model.config));
  std::vector<Sample> samples(static_cast<size_t>(options.samples),
                              Sample{TextStream(options.stops), "", false});
  samples.front().live = true;
  const auto heading = [&](size_t number) {
    return options.samples > 1 ? fmt::format("--- sample {} ---\n", number + 1) : std::string();
  };
  print(heading(0) + options.prompt);
  generator.generate(prompt, options.characters, options.sampling, options.seed,
                     [&](int64_t index, int32_t token) {
                       Sample& sample = samples[static_cast<size_t>(index)];
                       const int32_t one[] = {token};
                       sample.add(sample.stream.push(model.tokenizer->decode(one).take_or_throw()));
                       return !sample.stream.stopped();
                     });
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].add(samples[i].stream.finish());
    if (i > 0) print(heading(i) + options.prompt + samples[i].kept);
    print("\n");
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw DataError("cannot write the text to stdout");
}

}  // namespace fullbore

#include "fullbore/text/generate_text.h"

#include <fmt/format.h>

#include "fullbore/app/output.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/text_stream.h"

namespace fullbore {
namespace {

/// The prompt's tokens; an empty prompt becomes the end of a document before the text, or of a line,
/// or the first token of the vocabulary where it has no lines.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  if (prompt.empty()) {
    if (tokenizer.end_of_document() >= 0) return {tokenizer.end_of_document()};
    const Result<std::vector<int32_t>> line_end = tokenizer.encode("\n");
    return line_end.ok() && !line_end.value().empty() ? line_end.value() : std::vector<int32_t>{0};
  }
  Result<std::vector<int32_t>> tokens = tokenizer.encode(prompt);
  if (!tokens) throw UsageError("--prompt: " + tokens.error());
  return tokens.value();
}

/// Shows it at once.
void print(const std::string& text) {
  write_text(text);
  flush_output();
}

/// One text: the first is printed as it comes, the others are kept for later.
struct Sample {
  TextStream stream;
  std::string kept;
  bool live;

  void add(const std::string& text) { live ? print(text) : void(kept += text); }
};

void begin(Generator& generator, const std::vector<int32_t>& prompt, const TrainedModel& model,
           const GenerateOptions& options) {
  if (options.state_in.empty()) {
    generator.set_seed(options.seed);
    return generator.begin(prompt);
  }
  const SequenceStates sequences =
      load_sequences(options.state_in, generator.sequences(), model.identity).take_or_throw();
  if (sequences.sequences() != options.samples)
    throw UsageError(fmt::format("{} holds {} texts: pass --samples {}", options.state_in,
                                 sequences.sequences(), sequences.sequences()));
  generator.resume(sequences);
  if (!options.prompt.empty())
    generator.extend(prompt);
  else if (!generator.can_go_on())
    throw UsageError(
        fmt::format("{} was saved behind its prompt, with nothing generated: pass "
                    "--prompt to go on from it",
                    options.state_in));
}

/// Several prompts together, over a paged cache.
void generate_prompts(const std::string& run_or_checkpoint, const GenerateOptions& options) {
  if (options.samples > 1 || !(options.state_in + options.state_out).empty())
    throw UsageError(
        "several prompts are continued once each: --samples, --state-in and --state-out are for "
        "one");
  const auto rows = static_cast<int64_t>(options.prompts.size());
  TrainedModel model = load_model(run_or_checkpoint, {.samples = rows,
                                                      .tells = options.tells,
                                                      .decodes = true,
                                                      .is_paged = true,
                                                      .frozen_from = options.frozen_from});
  const int64_t tokens = model.tokenizer->vocabulary_size();
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& prompt : options.prompts)
    prompts.push_back(prompt_tokens(*model.tokenizer, prompt));
  PagedGenerator generator(model_paged_decode(model.config, tokens),
                           paged_sizes(model.config, tokens, rows), model.state,
                           trained_options(model.config));
  std::vector<Sample> texts(prompts.size(), Sample{TextStream(options.stops), "", false});
  texts.front().live = true;
  const auto heading = [&](size_t row) {
    return fmt::format("--- prompt {} ---\n{}", row + 1, options.prompts[row]);
  };
  print(heading(0));
  generator.generate(prompts, options.characters, options.sampling, options.seed,
                     [&](int64_t row, int32_t token) {
                       Sample& text = texts[static_cast<size_t>(row)];
                       const int32_t one[] = {token};
                       text.add(text.stream.push(model.tokenizer->decode(one).take_or_throw()));
                       return !text.stream.stopped();
                     });
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].add(texts[i].stream.finish());
    if (i > 0) print(heading(i) + texts[i].kept);
    print("\n");
  }
}

}  // namespace

void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options) {
  if (!options.prompts.empty()) return generate_prompts(run_or_checkpoint, options);
  TrainedModel model = load_model(run_or_checkpoint, {.samples = options.samples,
                                                      .tells = options.tells,
                                                      .decodes = true,
                                                      .frozen_from = options.frozen_from});
  const std::vector<int32_t> prompt = prompt_tokens(*model.tokenizer, options.prompt);
  const int64_t tokens = model.tokenizer->vocabulary_size();
  const GeneratorSizes sizes = generator_sizes(model.config, tokens, options.samples);
  if (sizes.context > 0 && !(options.state_in + options.state_out).empty())
    throw UsageError(fmt::format(
        "a {} model looks back at its text and keeps no state: --state-in and --state-out are for "
        "recurrent models",
        model.config.model.name));
  if (sizes.context > 0 && static_cast<int64_t>(prompt.size()) > sizes.context)
    print_message("the prompt has {} tokens, the model sees the last {} of them\n", prompt.size(),
                  sizes.context);
  Generator generator(model_decode(model.config, tokens), sizes, model.state,
                      trained_options(model.config));
  std::vector<Sample> samples(static_cast<size_t>(options.samples),
                              Sample{TextStream(options.stops), "", false});
  samples.front().live = true;
  const auto heading = [&](size_t number) {
    return options.samples > 1 ? fmt::format("--- sample {} ---\n", number + 1) : std::string();
  };
  print(heading(0) + options.prompt);
  begin(generator, prompt, model, options);
  generator.go_on(options.characters, options.sampling, [&](int64_t index, int32_t token) {
    Sample& sample = samples[static_cast<size_t>(index)];
    const int32_t one[] = {token};
    sample.add(sample.stream.push(model.tokenizer->decode(one).take_or_throw()));
    return !sample.stream.stopped();
  });
  if (!options.state_out.empty())
    save_sequences(options.state_out, generator.sequences(), model.identity).take_or_throw();
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].add(samples[i].stream.finish());
    if (i > 0) print(heading(i) + options.prompt + samples[i].kept);
    print("\n");
  }
}

}  // namespace fullbore

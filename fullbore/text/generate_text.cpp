#include "fullbore/text/generate_text.h"

#include <fmt/format.h>

#include "fullbore/app/output.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/text_stream.h"

namespace fullbore {

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

namespace {

using Emit = std::function<bool(size_t text, int32_t token)>;

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

/// What goes before each text but the first, which is shown at once, behind its own.
struct Headings {
  const GenerateOptions& options;
  std::string operator()(size_t number) const {
    if (!options.prompts.empty())
      return fmt::format("--- prompt {} ---\n{}", number + 1, options.prompts[number]);
    return (options.samples > 1 ? fmt::format("--- sample {} ---\n", number + 1) : std::string()) +
           options.prompt;
  }
};

void show_rest(std::vector<Sample>& texts, const Headings& heading) {
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].add(texts[i].stream.finish());
    if (i > 0) print(heading(i) + texts[i].kept);
    print("\n");
  }
}

void tell_unseen(size_t tokens, int64_t context) {
  if (context > 0 && static_cast<int64_t>(tokens) > context)
    print_message("the prompt has {} tokens, the model sees the last {} of them\n", tokens,
                  context);
}

/// Texts side by side, over a paged cache.
void roll_out(TrainedModel& model, const std::vector<std::vector<int32_t>>& prompts,
              const GenerateOptions& options, const Emit& emit) {
  const int64_t tokens = model.tokenizer->vocabulary_size();
  const int64_t texts = prompts.size() > 1 ? static_cast<int64_t>(prompts.size()) : options.samples;
  const RolloutSizes sizes = rollout_sizes(model.config, tokens, texts);
  Rollout rollout(model_paged_decode(model.config, tokens), sizes, model.state,
                  trained_options(model.config));
  std::vector<RolloutPrompt> asked;
  for (const std::vector<int32_t>& prompt : prompts)
    asked.push_back({.tokens = prompt,
                     .samples = prompts.size() > 1 ? 1 : options.samples,
                     .max_new_tokens = options.characters});
  const auto goes_on = [&](const RolloutRow& row) {
    return emit(row.prompt + row.sample, row.tokens.back());
  };
  rollout.run(
      asked,
      {.sampling = options.sampling, .key = options.seed, .slides = true, .goes_on = goes_on},
      [](RolloutRow&&) {});
}

/// Of a model that remembers.
void go_on(TrainedModel& model, const std::vector<int32_t>& prompt, const GenerateOptions& options,
           const Emit& emit) {
  const int64_t tokens = model.tokenizer->vocabulary_size();
  Generator generator(model_decode(model.config, tokens),
                      generator_sizes(model.config, tokens, options.samples), model.state,
                      trained_options(model.config));
  begin(generator, prompt, model, options);
  generator.go_on(options.characters, options.sampling, [&](int64_t index, int32_t token) {
    return emit(static_cast<size_t>(index), token);
  });
  if (!options.state_out.empty())
    save_sequences(options.state_out, generator.sequences(), model.identity).take_or_throw();
}

}  // namespace

void continue_texts(TrainedModel& model, const std::vector<std::vector<int32_t>>& prompts,
                    const GenerateOptions& options, const Emit& emit) {
  if (!has_paged_decode(model.config))
    go_on(model, prompts.front(), options, emit);
  else if (options.characters > 0)
    roll_out(model, prompts, options, emit);
}

void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options) {
  const bool several = !options.prompts.empty();
  const bool has_states = !(options.state_in + options.state_out).empty();
  if (several && (options.samples > 1 || has_states))
    throw UsageError(
        "several prompts are continued once each: --samples, --state-in and --state-out are for "
        "one");
  const size_t count = several ? options.prompts.size() : static_cast<size_t>(options.samples);
  TrainedModel model = load_model(run_or_checkpoint, {.samples = static_cast<int64_t>(count),
                                                      .tells = options.tells,
                                                      .decodes = true,
                                                      .is_paged = true,
                                                      .overrides = options.overrides,
                                                      .frozen_from = options.frozen_from});
  const bool pages = has_paged_decode(model.config);
  if (several && !pages)
    model_paged_decode(model.config, model.tokenizer->vocabulary_size());  // says why not
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& prompt : several ? options.prompts : std::vector{options.prompt})
    prompts.push_back(prompt_tokens(*model.tokenizer, prompt));
  const int64_t context =
      generator_sizes(model.config, model.tokenizer->vocabulary_size(), 1).context;
  if (context > 0 && has_states)
    throw UsageError(fmt::format(
        "a {} model looks back at its text and keeps no state: --state-in and --state-out are for "
        "recurrent models",
        model.config.model.name));
  if (!several) tell_unseen(prompts.front().size(), context);
  std::vector<Sample> texts(count, Sample{TextStream(options.stops), "", false});
  texts.front().live = true;
  const Headings heading{options};
  print(heading(0));
  continue_texts(model, prompts, options, [&](size_t index, int32_t token) {
    Sample& text = texts[index];
    const int32_t one[] = {token};
    text.add(text.stream.push(model.tokenizer->decode(one).take_or_throw()));
    return !text.stream.stopped();
  });
  show_rest(texts, heading);
}

}  // namespace fullbore

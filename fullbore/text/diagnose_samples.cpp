// The quality of samples, as a part of `fullbore diagnose`.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/lab/diagnosis/diagnosis.h"
#include "fullbore/text/generate_text.h"
#include "fullbore/text/sample_quality.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/text_stream.h"

namespace fullbore {
namespace {

constexpr int64_t kSamples = 4;
constexpr int64_t kTokens = 256;
constexpr int64_t kMostReference = int64_t{1}
                                   << 22;  // tokens of the training text that are looked through

/// Of several texts: means, or the largest, or the sum, as each figure is of the whole.
struct Quality {
  SampleQuality of = {.distinct_four_grams = 0};
  int texts = 0;

  void add(const SampleQuality& each) {
    of.distinct_four_grams += each.distinct_four_grams;
    of.longest_repetition = std::max(of.longest_repetition, each.longest_repetition);
    of.invalid_characters += each.invalid_characters;
    ++texts;
  }
  double distinct() const { return of.distinct_four_grams / std::max(texts, 1); }
};

std::string shown(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  TextStream stream({});
  const std::string text = stream.push(tokenizer.decode(tokens).take_or_throw());
  return text + stream.finish();
}

std::vector<std::vector<int32_t>> draw_samples(TrainedModel& model) {
  GenerateOptions options;
  options.characters = kTokens;
  options.samples = kSamples;
  std::vector<std::vector<int32_t>> samples(kSamples);
  continue_texts(model, {prompt_tokens(*model.tokenizer, "")}, options,
                 [&](size_t text, int32_t token) {
                   samples[text].push_back(token);
                   return true;
                 });
  return samples;
}

/// The beginning of what the run learned from.
std::vector<int32_t> training_tokens(const TrainedModel& model) {
  const TextData text = open_text(model.config, model.config.data.path, model.tokenizer);
  const TokenRange range = split_text(model.config, text).training;
  std::vector<int32_t> tokens(static_cast<size_t>(std::min(range.size(), kMostReference)));
  text.tokens->copy(range.begin, std::ssize(tokens), tokens.data());
  return tokens;
}

/// Of stretches of the text that are as long as samples.
Quality quality_of_text(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  Quality quality;
  const size_t length = std::min<size_t>(kTokens, tokens.size());
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t begin = (tokens.size() - length) * i / kSamples;
    const std::span<const int32_t> stretch = tokens.subspan(begin, length);
    quality.add(sample_quality(stretch, shown(tokenizer, stretch)));
  }
  return quality;
}

void advise_on(DiagnosisAddition& addition, const Quality& samples, const Quality& text,
               int64_t copied) {
  constexpr double kMostRepetitive = 0.7;  // of what the training text has
  const auto advise = [&](const char* rule, std::string finding, const char* change) {
    addition.advice.push_back({.rule = rule, .finding = std::move(finding), .change = change});
  };
  if (samples.distinct() < kMostRepetitive * text.distinct())
    advise(
        "samples-repeat",
        fmt::format("Samples repeat themselves: {:.0f} % of their 4-grams are distinct, {:.0f} % "
                    "of the training text's.",
                    100 * samples.distinct(), 100 * text.distinct()),
        "more steps, or generate --repetition-penalty 1.2");
  if (samples.of.invalid_characters > text.of.invalid_characters)
    advise("samples-invalid",
           fmt::format("Samples hold {} characters that are none, the training text {}.",
                       samples.of.invalid_characters, text.of.invalid_characters),
           "more steps, or a tokenizer whose tokens are whole characters");
  if (copied > kTokens / 2)
    advise("samples-copied",
           fmt::format("A sample holds {} tokens in a row of the training text: the model has "
                       "learned it by heart.",
                       copied),
           "more data, a smaller model, or train.early_stopping=3");
}

DiagnosisAddition describe_samples(const std::string& run) {
  TrainedModel model =
      load_model(run, {.samples = kSamples, .tells = false, .decodes = true, .is_paged = true});
  Quality samples;
  const std::vector<std::vector<int32_t>> drawn = draw_samples(model);
  for (const std::vector<int32_t>& tokens : drawn)
    samples.add(sample_quality(tokens, shown(*model.tokenizer, tokens)));
  const std::vector<int32_t> reference = training_tokens(model);
  const Quality text = quality_of_text(*model.tokenizer, reference);
  int64_t copied = 0;
  for (const std::vector<int32_t>& tokens : drawn)
    copied = std::max(copied, longest_copy(tokens, reference));
  DiagnosisAddition addition{.title = "samples"};
  const auto figures = [&](const std::string& of, const Quality& quality) {
    addition.figures.emplace_back(of + "distinct_four_grams", quality.distinct());
    addition.figures.emplace_back(of + "longest_repetition",
                                  static_cast<double>(quality.of.longest_repetition));
    addition.figures.emplace_back(of + "invalid_characters",
                                  static_cast<double>(quality.of.invalid_characters));
  };
  figures("", samples);
  figures("text_", text);
  addition.figures.emplace_back("longest_copy", static_cast<double>(copied));
  addition.lines = {
      fmt::format("{} samples of {} tokens, beside stretches of the training text as long:",
                  kSamples, kTokens),
      fmt::format("  distinct 4-grams       {:>7.1f}%{:>9.1f}%", 100 * samples.distinct(),
                  100 * text.distinct()),
      fmt::format("  longest repetition     {:>8}{:>10}", samples.of.longest_repetition,
                  text.of.longest_repetition),
      fmt::format("  invalid characters     {:>8}{:>10}", samples.of.invalid_characters,
                  text.of.invalid_characters),
      fmt::format("  longest copy of it     {:>8}", copied)};
  advise_on(addition, samples, text, copied);
  return addition;
}

}  // namespace

void register_sample_quality() {
  static const bool once = [] {
    register_diagnosis_adder({.name = "samples",
                              .is_for =
                                  [](const Config& config) {
                                    return is_text_model(config) && text_task(config) == nullptr &&
                                           !config.data.path.empty() &&
                                           config.engine.device != "null";
                                  },
                              .add = describe_samples});
    return true;
  }();
  (void)once;
}

}  // namespace fullbore

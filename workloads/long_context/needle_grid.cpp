#include "workloads/long_context/needle_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/split_mix.h"

namespace fullbore::long_context {
namespace {

/// Depths as whole numbers, which can be compared.
int64_t millionths(double depth) { return std::llround(depth * 1e6); }

std::vector<int32_t> encode_text(const Tokenizer& tokenizer, const std::string& text) {
  Result<std::vector<int32_t>> tokens = tokenizer.encode(text, SpecialTokens::kAsText);
  if (!tokens) throw UsageError("the model cannot spell the text: " + tokens.error());
  return std::move(tokens).value();
}

/// An example as the model reads it.
struct Prompt {
  NeedleExample example;
  std::vector<int32_t> tokens;  ///< of the text and the first question
};

/// Makes the examples of a grid and counts what is found in them.
class GridExamples {
 public:
  GridExamples(const Tokenizer& tokenizer, const NeedleGridOptions& options)
      : tokenizer_(tokenizer), options_(options) {}

  std::vector<double> depths() const {
    return has_depth(options_.task) ? options_.depths : std::vector<double>{0};
  }

  Prompt of_characters(uint64_t key, double depth, int64_t characters) const {
    Prompt prompt;
    prompt.example = make_needle_example(key, {.task = options_.task,
                                               .characters = characters,
                                               .depth = depth,
                                               .needles = options_.needles,
                                               .asked = options_.asked,
                                               .hops = options_.hops,
                                               .hide_answers = options_.hide_answers,
                                               .haystack = options_.haystack});
    prompt.tokens =
        encode_text(tokenizer_, prompt.example.text + prompt.example.questions.front().text);
    return prompt;
  }

  Prompt make(int64_t length, double depth, int64_t trial) const {
    const uint64_t key = needle_key(options_.seed, length, depth, trial);
    Prompt best = of_characters(key, depth, length);
    const auto size = [](const Prompt& prompt) {
      return static_cast<int64_t>(prompt.tokens.size());
    };
    if (size(best) == length) return best;
    if (size(best) > length)
      throw UsageError(
          fmt::format("{} characters make {} tokens of this model", length, size(best)));
    // Tokens of several characters: the most characters that still fit.
    int64_t fits = length;
    int64_t exceeds = 2 * length;
    for (; size(of_characters(key, depth, exceeds)) <= length; exceeds *= 2) fits = exceeds;
    while (exceeds - fits > 1) {
      const int64_t middle = fits + (exceeds - fits) / 2;
      Prompt tried = of_characters(key, depth, middle);
      if (size(tried) > length) {
        exceeds = middle;
        continue;
      }
      fits = middle;
      best = std::move(tried);
      if (size(best) == length) break;
    }
    return best;
  }

  void count(int64_t length, const NeedleQuestion& question, const std::string& answer) {
    const std::vector<bool> found = found_answers(question, answer);
    for (size_t i = 0; i < found.size(); ++i) {
      const double depth = question.answers[i].depth;
      NeedleCell& cell = cells_[{length, millionths(depth)}];
      cell.length = length;
      cell.depth = depth;
      ++cell.asked;
      cell.found += found[i] ? 1 : 0;
    }
  }

  NeedleGrid take() {
    for (const auto& [place, cell] : cells_) grid_.cells.push_back(cell);
    return std::move(grid_);
  }

 protected:
  const Tokenizer& tokenizer_;
  const NeedleGridOptions& options_;
  std::map<std::pair<int64_t, int64_t>, NeedleCell> cells_;
  NeedleGrid grid_;
};

class GridRun : public GridExamples {
 public:
  GridRun(ContextReader& reader, const Tokenizer& tokenizer, const NeedleGridOptions& options)
      : GridExamples(tokenizer, options), reader_(reader) {}

  NeedleGrid run(const std::function<bool(int64_t, int64_t)>& progress) {
    const std::vector<double> depths = this->depths();
    int64_t all = 0;
    for (const int64_t length : options_.lengths)
      all += length * options_.trials * static_cast<int64_t>(depths.size());
    int64_t done = 0;
    bool go_on = progress(0, all);
    for (const int64_t length : options_.lengths)
      for (const double depth : depths)
        for (int64_t trial = 0; trial < options_.trials && go_on; ++trial) {
          examine(make(length, depth, trial), length);
          done += length;
          go_on = progress(done, all);
        }
    return take();
  }

 private:
  void examine(const Prompt& prompt, int64_t length) {
    // Behind the prompt: every answer but for its last letter, and the questions between them.
    int64_t room = -1;
    std::vector<std::vector<int32_t>> questions;
    for (const NeedleQuestion& question : prompt.example.questions) {
      questions.push_back(encode_text(tokenizer_, question.text));
      room += question.room;
      if (questions.size() > 1) room += static_cast<int64_t>(questions.back().size());
    }
    reader_.begin(room);
    reader_.read(prompt.tokens);
    grid_.tokens += static_cast<int64_t>(prompt.tokens.size());
    Continuation answer;
    for (size_t i = 0; i < questions.size(); ++i) {
      const NeedleQuestion& question = prompt.example.questions[i];
      if (i > 0) {
        reader_.read(answer.unread);
        reader_.read(questions[i]);
      }
      const auto characters = static_cast<size_t>(question.room);
      answer = continue_text(reader_, tokenizer_, question.room,
                             [&](const std::string& text) { return text.size() >= characters; });
      count(length, question, answer.text);
    }
  }

  ContextReader& reader_;
};

/// Each prompt of the grid; `examples` makes them.
void each_prompt(const GridExamples& examples, const NeedleGridOptions& options,
                 const std::function<void(const NeedlePrompt&)>& use) {
  for (const int64_t length : options.lengths)
    for (const double depth : examples.depths())
      for (int64_t trial = 0; trial < options.trials; ++trial) {
        const NeedleExample example = examples.make(length, depth, trial).example;
        for (size_t i = 0; i < example.questions.size(); ++i) {
          NeedlePrompt prompt{"",
                              length,
                              depth,
                              trial,
                              example.text + example.questions[i].text,
                              example.questions[i]};
          prompt.id = fmt::format("{}-{}-{:.6g}-{}-{}-{}", needle_task_name(options.task), length,
                                  depth, trial, i, hash_hex(hash_text(prompt.prompt)));
          use(prompt);
        }
      }
}

/// What people's models put before an answer.
std::string_view without_lead(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n\"'`*");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

}  // namespace

uint64_t needle_key(uint64_t seed, int64_t length, double depth, int64_t trial) {
  return mixed_key({seed, static_cast<uint64_t>(length), static_cast<uint64_t>(millionths(depth)),
                    static_cast<uint64_t>(trial)});
}

NeedleGrid run_needle_grid(ContextReader& reader, const Tokenizer& tokenizer,
                           const NeedleGridOptions& options,
                           const std::function<bool(int64_t, int64_t)>& progress) {
  return GridRun(reader, tokenizer, options).run(progress);
}

void for_each_needle_prompt(const Tokenizer& tokenizer, const NeedleGridOptions& options,
                            const std::function<void(const NeedlePrompt&)>& use) {
  each_prompt(GridExamples(tokenizer, options), options, use);
}

ScoredAnswers score_needle_answers(const Tokenizer& tokenizer, const NeedleGridOptions& options,
                                   const std::map<std::string, std::string>& answers) {
  GridExamples examples(tokenizer, options);
  ScoredAnswers scored;
  std::map<std::string, std::string> left = answers;
  each_prompt(examples, options, [&](const NeedlePrompt& prompt) {
    const auto answer = left.find(prompt.id);
    if (answer == left.end()) ++scored.missing;
    examples.count(prompt.length, prompt.question,
                   std::string(answer == left.end() ? "" : without_lead(answer->second)));
    if (answer != left.end()) left.erase(answer);
  });
  for (const auto& [id, answer] : left) scored.unknown.push_back(id);
  scored.grid = examples.take();
  return scored;
}

std::vector<LengthAccuracy> accuracy_by_length(const NeedleGrid& grid) {
  std::vector<LengthAccuracy> lengths;
  int64_t count = 0;
  for (const NeedleCell& cell : grid.cells) {
    if (lengths.empty() || lengths.back().length != cell.length) {
      lengths.push_back({cell.length, 0});
      count = 0;
    }
    ++count;
    double& mean = lengths.back().accuracy;
    mean += (cell.accuracy() - mean) / static_cast<double>(count);
  }
  return lengths;
}

std::vector<DepthAccuracy> accuracy_by_cell(const NeedleGrid& grid) {
  std::vector<DepthAccuracy> cells;
  for (const NeedleCell& cell : grid.cells)
    cells.push_back({cell.length, cell.depth, cell.accuracy()});
  return cells;
}

}  // namespace fullbore::long_context

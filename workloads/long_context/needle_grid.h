#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workloads/long_context/accuracy.h"
#include "workloads/long_context/context_reader.h"
#include "workloads/long_context/needle_example.h"

namespace fullbore::long_context {

/// Which examples are made: the same for every model.
struct NeedleGridOptions {
  NeedleTask task = NeedleTask::single;
  std::vector<int64_t> lengths;  ///< tokens, ascending
  std::vector<double> depths;    ///< ascending in [0, 1]; counts where has_depth(task)
  int64_t trials = 10;           ///< examples of each length and depth
  int64_t needles = 1;
  int64_t asked = 0;
  int64_t hops = 4;
  bool hide_answers = false;
  uint64_t seed = 0;
  std::string_view haystack = {};
};

/// What was found at a length and a depth.
struct NeedleCell {
  int64_t length = 0;
  double depth = 0;
  int64_t asked = 0;
  int64_t found = 0;
  double accuracy() const {
    return asked > 0 ? static_cast<double>(found) / static_cast<double>(asked) : 0;
  }
};

struct NeedleGrid {
  std::vector<NeedleCell> cells;  ///< ascending by length, then depth
  int64_t tokens = 0;             ///< read, of all examples
};

/// The key of an example: of all that it is told apart by, and of nothing else, so that a cell has the
/// same examples in whatever grid it is.
uint64_t needle_key(uint64_t seed, int64_t length, double depth, int64_t trial);

/// Asks the model. An answer is right where it is the value exactly, of tasks with several answers where
/// it holds the value as a word; each is counted at the depth where it stands. A text has `length`
/// tokens to the end of its first question, or as many as whole characters allow. `progress` is told
/// of the tokens read and of how many there will be, and stops the work by returning false: the
/// cells then are of what was done. UsageError where the model cannot spell the text, or it is too short
/// for the needles.
NeedleGrid run_needle_grid(ContextReader& reader, const Tokenizer& tokenizer,
                           const NeedleGridOptions& options,
                           const std::function<bool(int64_t done, int64_t all)>& progress);

/// A prompt of the grid for a model that is elsewhere: the text and one question, of several each by itself.
struct NeedlePrompt {
  std::string
      id;  ///< "single-1024-0.5-3-0-<hash>": task, length, depth, trial, question, and a hash of the prompt
  int64_t length = 0;
  double depth = 0;
  int64_t trial = 0;
  std::string prompt;
  NeedleQuestion question;
};
/// All prompts of the grid, in order. UsageError as run_needle_grid().
void for_each_needle_prompt(const Tokenizer& tokenizer, const NeedleGridOptions& options,
                            const std::function<void(const NeedlePrompt&)>& use);
/// What answers by id come to, by the rule of found_answers() behind leading white space and quotes. Prompts without
/// an answer found nothing; `missing` counts them. `unknown` names the ids of answers to no prompt of the grid.
struct ScoredAnswers {
  NeedleGrid grid;
  int64_t missing = 0;
  std::vector<std::string> unknown;
};
ScoredAnswers score_needle_answers(const Tokenizer& tokenizer, const NeedleGridOptions& options,
                                   const std::map<std::string, std::string>& answers);

/// The mean over the depths of each length.
std::vector<LengthAccuracy> accuracy_by_length(const NeedleGrid& grid);
std::vector<DepthAccuracy> accuracy_by_cell(const NeedleGrid& grid);

}  // namespace fullbore::long_context

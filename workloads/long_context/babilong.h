#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/long_context/asked_example.h"

namespace fullbore::long_context {

/// BABILong (Kuratov et al. 2024, arXiv:2406.10149): facts of bAbI (Weston et al. 2015, arXiv:1502.05698) scattered
/// among the sentences of a long text. The facts are made up by bAbI's rules, the text is the user's.
///
///   qa1  one supporting fact: where is a person?         qa4  two arguments: what is north of the kitchen?
///   qa2  two: where is a thing that a person took?       qa5  three: who gave what to whom?
///   qa3  three: where was the thing before?
enum class BabiTask : uint8_t { qa1, qa2, qa3, qa4, qa5 };
std::vector<std::string> babi_task_names();
std::optional<BabiTask> parse_babi_task(std::string_view name);

/// A story of bAbI.
struct BabiStory {
  std::vector<std::string> facts;  ///< in order of time
  std::string question;
  std::string answer;
};
BabiStory make_babi_story(BabiTask task, uint64_t key);

struct BabilongOptions {
  BabiTask task = BabiTask::qa1;
  uint64_t key = 0;
  int64_t length = 4096;  ///< tokens of prompt and answer together, at most
  /// Sentences of the text, read on from one that is drawn, from the front again behind the last; not empty.
  const std::vector<std::string>* background = nullptr;
};
/// The longest example that has room within the length, of the first of 100 stories whose facts have. UsageError if
/// none has.
AskedExample make_babilong_example(const BabilongOptions& options, const CountTokens& tokens);

/// BABILong's rule: what the first sentence of the text names of the words that the task can be answered by, those of
/// the question left out, is the answer alone.
double babilong_score(BabiTask task, const AskedExample& example, std::string_view text);

}  // namespace fullbore::long_context

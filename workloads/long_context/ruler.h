#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/long_context/asked_example.h"

namespace fullbore::long_context {

/// The 13 tasks of RULER (Hsieh et al. 2024, arXiv:2404.06654, table 5), made up: nothing of its data is needed.
/// Words are syllables; essays are a text of the user's or sentences of such words; questions about documents (qa_1,
/// one document to be found; qa_2, two) are about people, companies and towns that do not exist.
///
///   niah_single_1    noise, words -> numbers         niah_multikey_1  essay, 4 keys
///   niah_single_2    essay, words -> numbers         niah_multikey_2  a haystack of needles
///   niah_single_3    essay, words -> UUIDs           niah_multikey_3  the same of UUIDs
///   niah_multivalue  essay, 4 values of a key        niah_multiquery  essay, 4 keys asked for
///   vt   variable tracking: a chain of 4 hops        cwe  common words: 10, among rarer ones
///   fwe  frequent words of a Zipf distribution, 3    qa_1, qa_2
enum class RulerTask : uint8_t {
  niah_single_1,
  niah_single_2,
  niah_single_3,
  niah_multikey_1,
  niah_multikey_2,
  niah_multikey_3,
  niah_multivalue,
  niah_multiquery,
  vt,
  cwe,
  fwe,
  qa_1,
  qa_2
};
std::vector<std::string> ruler_task_names();
std::optional<RulerTask> parse_ruler_task(std::string_view name);

struct RulerOptions {
  RulerTask task = RulerTask::niah_single_1;
  uint64_t key = 0;
  int64_t length = 4096;  ///< tokens of prompt and answer together, at most
  bool digits = true;  ///< false: letters for numbers and UUIDs, for models that cannot spell them
  /// Sentences of essays, from one that is drawn; empty: made-up ones.
  const std::vector<std::string>* essay = nullptr;
};

/// The longest example that has room within the length: a function of the options and the tokenizer alone. UsageError
/// if the shortest has none.
AskedExample make_ruler_example(const RulerOptions& options, const CountTokens& tokens);

/// RULER's scores, of a text in any case: the share of the answers that stand in it; of qa, whether one of them does.
double ruler_score(RulerTask task, const AskedExample& example, std::string_view text);

}  // namespace fullbore::long_context

#include <fmt/format.h>

#include <memory>

#include "fullbore/data/text_file.h"
#include "workloads/long_context/babilong.h"
#include "workloads/long_context/long_context_suite.h"
#include "workloads/long_context/made_words.h"
#include "workloads/long_context/ruler.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of these commands

struct RulerArguments {
  SuiteArguments suite;
  std::string haystack;
  std::string values = "auto";
};
struct BabilongArguments {
  SuiteArguments suite;
  std::string background;
};

std::vector<std::string> sentences_of(const std::string& path) {
  std::vector<std::string> sentences = split_sentences(read_text(path).take_or_throw());
  if (sentences.empty()) throw DataError(path + ": there is no sentence in it");
  return sentences;
}

/// Numbers, unless the model has no tokens for them.
bool uses_digits(const std::string& values, const Tokenizer& tokenizer) {
  if (values != "auto") return values == "numbers";
  return encode_known(tokenizer, "0123456789").unknown_characters == 0;
}

ExitCode run_ruler(const RulerArguments& arguments) {
  AskedSuite suite{"ruler", suite_tasks(arguments.suite, ruler_task_names()), {}, {}};
  std::vector<std::string> essay;
  if (!arguments.haystack.empty()) essay = sentences_of(arguments.haystack);
  ContextModel model = open_context_model(arguments.suite.model, arguments.suite.seed);
  const bool digits = uses_digits(arguments.values, *model.tokenizer);
  suite.make = [&](const std::string& task, int64_t length, uint64_t key,
                   const CountTokens& tokens) {
    return make_ruler_example({*parse_ruler_task(task), key, length, digits, &essay}, tokens);
  };
  suite.score = [](const std::string& task, const AskedExample& example, std::string_view answer) {
    return ruler_score(*parse_ruler_task(task), example, answer);
  };
  return run_suite(arguments.suite, suite, model);
}

ExitCode run_babilong(const BabilongArguments& arguments) {
  AskedSuite suite{"babilong", suite_tasks(arguments.suite, babi_task_names()), {}, {}};
  const std::vector<std::string> background = sentences_of(arguments.background);
  ContextModel model = open_context_model(arguments.suite.model, arguments.suite.seed);
  suite.make = [&](const std::string& task, int64_t length, uint64_t key,
                   const CountTokens& tokens) {
    return make_babilong_example({*parse_babi_task(task), key, length, &background}, tokens);
  };
  suite.score = [](const std::string& task, const AskedExample& example, std::string_view answer) {
    return babilong_score(*parse_babi_task(task), example, answer);
  };
  return run_suite(arguments.suite, suite, model);
}

}  // namespace

void add_made_commands(Command group) {
  Command ruler = group.add_subcommand("ruler", "The 13 tasks of RULER, made up from a seed");
  auto of_ruler = std::make_shared<RulerArguments>();
  of_ruler->suite.threshold = 0.856;  // Llama 2 at 4K, by which the paper calls lengths effective
  add_suite_arguments(ruler, of_ruler->suite);
  ruler.add_option("--haystack", of_ruler->haystack,
                   "Text to hide needles in where RULER has essays; by default made-up sentences");
  ruler
      .add_option("--values", of_ruler->values,
                  "What needles hold; letters are for models without digits, which auto sees")
      .one_of({"auto", "numbers", "letters"})
      .shows_default();
  ruler.footer(R"(
arXiv:2404.06654: needles (niah_*), variable tracking (vt), common and frequent words (cwe, fwe),
questions about documents (qa_1: one to be found, qa_2: two). Its tasks, sizes and scores; words,
people and documents are made up, none of its data is needed. Scores: the share of the answers that
stand in what the model writes, of qa whether one does. 0.856 is the paper's threshold.

Example:
  fullbore longcontext ruler runs/default-1 --lengths 2K,4K --json ruler.json
  fullbore longcontext ruler runs/default-1 --tasks niah_single_1,vt,cwe --haystack novel.txt
  fullbore longcontext usable-length ruler.json --threshold 0.856 --svg usable.svg)");
  ruler.runs([of_ruler] { return run_ruler(*of_ruler); });

  Command babilong =
      group.add_subcommand("babilong", "Facts of bAbI among the sentences of a text of yours");
  auto of_babilong = std::make_shared<BabilongArguments>();
  add_suite_arguments(babilong, of_babilong->suite);
  babilong
      .add_option("--background", of_babilong->background,
                  "Text whose sentences the facts lie among")
      .required();
  babilong.footer(R"(
arXiv:2406.10149: qa1 to qa5, with one, two and three supporting facts, two and three arguments. The
facts are made up by bAbI's rules from a seed. An answer is right if its first sentence names, of the
words that the task can be answered by, the right one alone; words of the question do not count.

Example:
  fullbore longcontext babilong runs/default-1 --background novel.txt --lengths 2K,4K
  fullbore longcontext babilong runs/default-1 --background novel.txt --tasks qa1,qa2 --export qa.jsonl)");
  babilong.runs([of_babilong] { return run_babilong(*of_babilong); });
}

}  // namespace fullbore

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "workloads/long_context/benchmark_files.h"
#include "workloads/long_context/longcontext_command.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of these commands

struct BenchmarkArguments {
  Benchmark benchmark = Benchmark::longbench;
  std::string model;
  std::vector<std::string> files;
  std::string task;
  std::string limit;
  int64_t items = 0;
  int64_t room = 0;
  bool guess_missing = false;
  std::string json;
  std::string answers;
};

/// Where items end up, in the order in which names came.
struct Group {
  std::string name;
  std::string measure;
  Mean score;
};
void add_to(std::vector<Group>& groups, const std::string& name, std::string_view measure,
            double score) {
  for (Group& group : groups)
    if (group.name == name) return group.score.add(score);
  groups.push_back({name, std::string(measure), {}});
  groups.back().score.add(score);
}

struct BenchmarkRun {
  std::vector<Group> tasks;
  std::vector<Group> parts;  ///< "difficulty hard"
  Mean at_gate;              ///< F1 of items from 90K to 110K tokens
  int64_t tokens = 0;        ///< read
  int64_t longest = 0;       ///< prompt, in tokens, before any cut
  int64_t cut = 0;           ///< prompts that were too long
  int64_t unknown_characters = 0;
  std::string answers;  ///< JSON lines
};

constexpr int64_t kGateFrom = 90 * 1024;
constexpr int64_t kGateTo = 110 * 1024;

void ask(const BenchmarkArguments& arguments, const ContextModel& model, const BenchmarkItem& item,
         BenchmarkRun& run) {
  const int64_t room = arguments.room > 0 ? arguments.room : item.room;
  EncodedText prompt = encode_known(*model.tokenizer, item.prompt());
  const auto length = static_cast<int64_t>(prompt.tokens.size());
  int64_t most = arguments.limit.empty() ? 0 : parse_lengths("--limit", arguments.limit).front();
  if (const int64_t sight = model.reader->context(); sight > 0) {
    const int64_t place = std::max<int64_t>(1, sight - std::min(room, sight / 2));
    most = most > 0 ? std::min(most, place) : place;
  }
  cut_middle(prompt.tokens, most);
  run.longest = std::max(run.longest, length);
  run.cut += most > 0 && length > most ? 1 : 0;
  run.unknown_characters += prompt.unknown_characters;
  run.tokens += static_cast<int64_t>(prompt.tokens.size());
  std::string answer;
  if (!prompt.tokens.empty()) {
    model.reader->begin(model.reader->context() > 0 ? std::min(room, model.reader->context() / 2)
                                                    : room);
    model.reader->read(prompt.tokens);
    answer = continue_text(*model.reader, *model.tokenizer, room, [](const std::string&) {
               return false;
             }).text;
  }
  const double score = answer_score(item, answer, arguments.guess_missing);
  const std::string_view measure = answer_metric_name(item.metric);
  add_to(run.tasks, item.task, measure, score);
  for (const auto& [name, value] : item.groups)
    if (name != "language") add_to(run.parts, fmt::format("{} {}", name, value), measure, score);
  const bool is_f1 = item.metric == AnswerMetric::f1 || item.metric == AnswerMetric::f1_characters;
  if (is_f1 && length >= kGateFrom && length <= kGateTo) run.at_gate.add(score);
  const nlohmann::ordered_json line = {
      {"id", item.id},        {"task", item.task},          {"tokens", length},
      {"prediction", answer}, {"answers", item.references}, {"score", score}};
  run.answers += json_text(line, -1);
}

BenchmarkRun run_items(const BenchmarkArguments& arguments, const ContextModel& model,
                       Console& console) {
  BenchmarkRun run;
  for (const std::string& file : arguments.files) {
    BenchmarkReader reader =
        BenchmarkReader::open(file, arguments.benchmark, arguments.task).take_or_throw();
    const auto start = std::chrono::steady_clock::now();
    BenchmarkItem item;
    while ((arguments.items == 0 || reader.items() < static_cast<uint64_t>(arguments.items)) &&
           reader.next(item).take_or_throw()) {
      ask(arguments, model, item, run);
      if (!console.live_due()) continue;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      const auto done = static_cast<double>(reader.items());
      const std::string left =
          arguments.items > 0
              ? fmt::format("  {} left",
                            duration_text(passed.count() / done *
                                          (static_cast<double>(arguments.items) - done)))
              : "";
      console.live(fmt::format("{}: {} items, {} each{}", file, reader.items(),
                               duration_text(passed.count() / done), left));
    }
  }
  console.clear();
  if (run.tasks.empty()) throw DataError(fmt::format("{}: no items", arguments.files.front()));
  return run;
}

/// Of the tasks, each alike.
double overall(const BenchmarkRun& run) {
  Mean mean;
  for (const Group& task : run.tasks) mean.add(task.score.value());
  return mean.value();
}

nlohmann::ordered_json groups_json(const std::vector<Group>& groups) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Group& group : groups)
    json.push_back({{"name", group.name},
                    {"measure", group.measure},
                    {"items", group.score.count},
                    {"score", group.score.value()}});
  return json;
}

void print_groups(const std::vector<Group>& groups) {
  for (const Group& group : groups)
    print_output("{:<28}{:>7} {:>8}  {}\n", group.name, group.score.count,
                 fmt::format("{:.2f}", 100 * group.score.value()), group.measure);
}

ExitCode run_benchmark(const BenchmarkArguments& arguments) {
  check_output_file(arguments.json);
  check_output_file(arguments.answers);
  if (!arguments.limit.empty()) parse_lengths("--limit", arguments.limit);
  for (const std::string& file : arguments.files)  // refused before any model is loaded
    BenchmarkReader::open(file, arguments.benchmark, arguments.task).take_or_throw();
  const ContextModel model = open_context_model(arguments.model, 0);
  Console console;
  const auto start = std::chrono::steady_clock::now();
  const BenchmarkRun run = run_items(arguments, model, console);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const bool is_longbench = arguments.benchmark == Benchmark::longbench;
  const Gate gate = longbench_gate(run.at_gate.value(), run.at_gate.count);
  if (arguments.json != "-" && arguments.answers != "-") {
    print_output("{}\n{:<28}{:>7} {:>8}\n", model_text(model), "task", "items", "score");
    print_groups(run.tasks);
    print_groups(run.parts);
    print_output("{:<28}{:>7} {:>8}\n", "mean of tasks", "",
                 fmt::format("{:.2f}", 100 * overall(run)));
    print_output("longest prompt {} tokens; {} cut in the middle; {} tokens read in {}\n",
                 run.longest, run.cut, count_text(static_cast<double>(run.tokens)),
                 duration_text(passed.count()));
    if (run.unknown_characters > 0)
      print_output("{} characters left out, for the model has no token for them\n",
                   run.unknown_characters);
    if (is_longbench)
      print_output(
          "gate of phase 2: {} (an F1 above 0.6 from 90K to 110K tokens opens InfiniteBench)\n",
          gate_name(gate));
  }
  if (!arguments.json.empty()) {
    nlohmann::ordered_json json = {{"kind", is_longbench ? "longbench"
                                            : arguments.benchmark == Benchmark::mrcr
                                                ? "mrcr"
                                                : "infinitebench"}};
    json.update(model_json(model));
    json.update({{"files", arguments.files},
                 {"limit", arguments.limit},
                 {"tasks", groups_json(run.tasks)},
                 {"parts", groups_json(run.parts)},
                 {"score", overall(run)},
                 {"longest_prompt", run.longest},
                 {"cut", run.cut},
                 {"unknown_characters", run.unknown_characters},
                 {"tokens", run.tokens},
                 {"seconds", passed.count()}});
    if (is_longbench) json["gate_100k"] = gate_name(gate);
    write_json(arguments.json, json);
  }
  if (!arguments.answers.empty()) write_output_file(arguments.answers, run.answers);
  return ExitCode::kOk;
}

std::shared_ptr<BenchmarkArguments> add_benchmark(Command command, Benchmark benchmark) {
  auto arguments = std::make_shared<BenchmarkArguments>();
  arguments->benchmark = benchmark;
  command
      .add_option("MODEL", arguments->model, "Run directory (its best checkpoint) or a checkpoint")
      .required();
  command.add_option("FILE", arguments->files, "JSON lines or a JSON list, gzipped or not; several")
      .required();
  command.add_option("--limit", arguments->limit,
                     "Tokens of a prompt; what is too much is cut out of the middle");
  command.add_option("--items", arguments->items, "The first so many of each file; 0: all")
      .between(int64_t{0}, int64_t{1} << 40);
  command.add_option("--room", arguments->room, "Tokens of an answer; 0: as the task has it")
      .between(int64_t{0}, int64_t{1} << 20);
  command.add_option("--json", arguments->json, "File to write all figures to; -: stdout");
  command.add_option("--answers", arguments->answers,
                     "File for what the model answered, JSON lines; -: stdout");
  command.runs([arguments] { return run_benchmark(*arguments); });
  return arguments;
}

}  // namespace

void add_benchmark_commands(Command group) {
  Command longbench =
      group.add_subcommand("longbench", "LongBench and LongBench v2, of files that you have");
  const auto arguments = add_benchmark(longbench, Benchmark::longbench);
  longbench.add_flag("--guess-missing", arguments->guess_missing,
                     "Of four choices: an answer that states none is worth 0.25");
  longbench.footer(R"(
Reads the benchmark's own records, of either version, one at a time: v1 has the fields input, context,
answers and dataset; v2 question, choice_A to choice_D, answer, difficulty and length. Scores are the
benchmark's: F1, ROUGE-L, edit similarity, classification, retrieval; accuracy of stated choices. Texts
without spaces between words are compared by characters. Prompts are short forms that a model without
instruction tuning can continue. Characters that it has no token for are left out, and counted.

Example:
  fullbore longcontext longbench runs/default-1 hotpotqa.jsonl trec.jsonl --json longbench.json
  fullbore longcontext longbench runs/default-1 data.json --limit 8K --items 20 --answers answers.jsonl)");
  Command mrcr = group.add_subcommand("mrcr", "MRCR, of files that you have");
  add_benchmark(mrcr, Benchmark::mrcr);
  mrcr.footer(R"(
Reads OpenAI's records: prompt (a conversation), answer, random_string_to_prepend. Its score: 0 for an
answer that does not begin with that string, else how alike the rest is to the right answer, as
Python's difflib.SequenceMatcher tells it.

Example:
  fullbore longcontext mrcr runs/default-1 mrcr.jsonl --limit 8K --items 50)");
  Command infinitebench =
      group.add_subcommand("infinitebench", "InfiniteBench, of files that you have");
  const auto more = add_benchmark(infinitebench, Benchmark::infinitebench);
  infinitebench.add_option("--task", more->task, "Of the files; by default as they are called")
      .one_of(infinitebench_tasks());
  infinitebench.footer(R"(
Reads the benchmark's own records, context, input, answer and options, one at a time; the file's name
says the task, as in passkey.jsonl. Scores are the benchmark's: the first integer of keys and numbers,
words of KV pairs and dialogues, letters of choices, the last integer of code, F1 of questions,
ROUGE-Lsum of summaries, the share of a calculation that is right from its begin on.

Example:
  fullbore longcontext infinitebench runs/default-1 passkey.jsonl kv_retrieval.jsonl
  fullbore longcontext infinitebench runs/default-1 part.jsonl --task math_find --limit 16K)");
}

}  // namespace fullbore

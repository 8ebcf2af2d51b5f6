#include "workloads/long_context/long_context_suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/text.h"
#include "fullbore/data/split_mix.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of these commands

/// Scores of a task at a length.
struct SuiteCell {
  std::string task;
  int64_t length = 0;
  Mean score;
};

class SuiteRun {
 public:
  SuiteRun(const SuiteArguments& arguments, const AskedSuite& suite, ContextModel& model)
      : arguments_(arguments),
        suite_(suite),
        model_(model),
        lengths_(parse_lengths("--lengths", arguments.lengths)) {}

  /// Prompts and answers, JSON lines.
  std::string prompts() {
    std::string lines;
    each([&](const std::string& task, int64_t length, int64_t number, const AskedExample& made) {
      lines += line({{"id", id(task, length, number)},
                     {"task", task},
                     {"length", length},
                     {"prompt", made.prompt},
                     {"answers", made.answers},
                     {"room", made.room}});
      return true;
    });
    return lines;
  }

  void ask(Console& console) {
    int64_t all = 0, done = 0;
    for (const int64_t length : lengths_)
      all += length * arguments_.examples * static_cast<int64_t>(suite_.tasks.size());
    const auto progress = token_progress(console, "asking " + suite_.kind);
    const int64_t sight = model_.reader->context();
    each([&](const std::string& task, int64_t length, int64_t number, const AskedExample& made) {
      const EncodedText prompt = encode_known(*model_.tokenizer, made.prompt);
      unknown_ += prompt.unknown_characters;
      beyond_ += sight > 0 && length > sight ? 1 : 0;
      model_.reader->begin(sight > 0 ? std::min(made.room, sight / 2) : made.room);
      model_.reader->read(prompt.tokens);
      const std::string answer =
          continue_text(*model_.reader, *model_.tokenizer, made.room, [](const std::string&) {
            return false;
          }).text;
      const double score = suite_.score(task, made, answer);
      cell(task, length).score.add(score);
      answers_ += line({{"id", id(task, length, number)},
                        {"task", task},
                        {"length", length},
                        {"tokens", prompt.tokens.size()},
                        {"prediction", answer},
                        {"answers", made.answers},
                        {"score", score}});
      return progress(done += length, all);
    });
    console.clear();
  }

  const std::string& answers() const { return answers_; }

  std::vector<LengthAccuracy> lengths() const {
    std::vector<LengthAccuracy> found;
    for (const int64_t length : lengths_) {
      Mean mean;
      for (const SuiteCell& each : cells_)
        if (each.length == length) mean.add(each.score.value());
      found.push_back({length, mean.value()});
    }
    return found;
  }

  std::string text(double seconds) const {
    std::string text = fmt::format("{}, {} examples a cell, seed {}\n{:<20}", model_text(model_),
                                   arguments_.examples, arguments_.seed, "task");
    for (const int64_t length : lengths_) text += fmt::format("{:>9}", length_text(length));
    text += "  tokens; per cent\n";
    for (const std::string& task : suite_.tasks) {
      text += fmt::format("{:<20}", task);
      for (const int64_t length : lengths_)
        for (const SuiteCell& each : cells_)
          if (each.task == task && each.length == length)
            text += fmt::format("{:>9.1f}", 100 * each.score.value());
      text += '\n';
    }
    text += fmt::format("{:<20}", "mean");
    for (const LengthAccuracy& each : lengths())
      text += fmt::format("{:>9.1f}", 100 * each.accuracy);
    text += fmt::format("\nusable length       {} at {}\n",
                        usable_length_text(lengths(), arguments_.threshold),
                        percent_text(arguments_.threshold));
    for (const std::string& warning : warnings())
      text += fmt::format("{:<20}{}\n", "warning", warning);
    return text + fmt::format("{:<20}{}\n", "took", duration_text(seconds));
  }

  nlohmann::ordered_json json(double seconds) const {
    nlohmann::ordered_json json = {{"kind", suite_.kind}};
    json.update(model_json(model_));
    json.update({{"seed", arguments_.seed}, {"examples", arguments_.examples}});
    for (const SuiteCell& each : cells_)
      json["cells"].push_back({{"task", each.task},
                               {"length", each.length},
                               {"examples", each.score.count},
                               {"score", each.score.value()}});
    for (const LengthAccuracy& each : lengths())
      json["lengths"].push_back({{"length", each.length}, {"accuracy", each.accuracy}});
    json["usable_length"] = usable_length_json(lengths(), arguments_.threshold);
    json["warnings"] = warnings();
    json["seconds"] = seconds;
    return json;
  }

 private:
  static std::string line(const nlohmann::ordered_json& json) { return json_text(json, -1); }
  static std::string id(const std::string& task, int64_t length, int64_t number) {
    return fmt::format("{}-{}-{}", task, length, number);
  }
  SuiteCell& cell(const std::string& task, int64_t length) {
    for (SuiteCell& each : cells_)
      if (each.task == task && each.length == length) return each;
    return cells_.emplace_back(SuiteCell{task, length, {}});
  }
  std::vector<std::string> warnings() const {
    std::vector<std::string> warnings;
    if (beyond_ > 0)
      warnings.push_back(
          fmt::format("the model sees {} tokens at once; what is further back it cannot find",
                      model_.reader->context()));
    if (unknown_ > 0)
      warnings.push_back(fmt::format(
          "{} characters were left out, for the model has no token for them", unknown_));
    return warnings;
  }

  /// Every example, by a key of all that it is told apart by.
  void each(
      const std::function<bool(const std::string&, int64_t, int64_t, const AskedExample&)>& use) {
    const CountTokens count = [this](const std::string& text) {
      return static_cast<int64_t>(encode_known(*model_.tokenizer, text).tokens.size());
    };
    for (const int64_t length : lengths_)
      for (const std::string& task : suite_.tasks)
        for (int64_t number = 0; number < arguments_.examples; ++number) {
          const uint64_t key =
              mixed_key({arguments_.seed, hash_text(suite_.kind + " " + task),
                         static_cast<uint64_t>(length), static_cast<uint64_t>(number)});
          if (!use(task, length, number, suite_.make(task, length, key, count))) return;
        }
  }

  const SuiteArguments& arguments_;
  const AskedSuite& suite_;
  ContextModel& model_;
  std::vector<int64_t> lengths_;
  std::vector<SuiteCell> cells_;
  std::string answers_;
  int64_t unknown_ = 0;
  int64_t beyond_ = 0;
};

}  // namespace

void add_suite_arguments(Command command, SuiteArguments& arguments) {
  command
      .add_option(
          "MODEL", arguments.model,
          "Run directory (its best checkpoint) or a checkpoint; random: who guesses letters")
      .required();
  command.add_option("--tasks", arguments.tasks, "Names, divided by commas; by default all");
  command.add_option("--lengths", arguments.lengths, "Of prompt and answer, in tokens")
      .shows_default();
  command.add_option("--examples", arguments.examples, "Of each task and length")
      .between(int64_t{1}, int64_t{1000000})
      .shows_default();
  command
      .add_option("--seed", arguments.seed,
                  "Of the examples: the same seed, the same for all models")
      .shows_default();
  command.add_option("--threshold", arguments.threshold, "Of the usable length")
      .between(0.0, 1.0)
      .shows_default();
  command.add_option("--json", arguments.json, "File to write all figures to; -: stdout");
  command.add_option("--answers", arguments.answers,
                     "File for what the model answered, JSON lines; -: stdout");
  command.add_option("--export", arguments.export_file,
                     "File to write prompts and answers to, JSON lines; nothing is asked");
}

std::vector<std::string> suite_tasks(const SuiteArguments& arguments,
                                     const std::vector<std::string>& all) {
  if (arguments.tasks.empty()) return all;
  std::vector<std::string> tasks;
  for (size_t begin = 0; begin <= arguments.tasks.size();) {
    const size_t end = std::min(arguments.tasks.find(',', begin), arguments.tasks.size());
    const std::string task = arguments.tasks.substr(begin, end - begin);
    if (std::ranges::find(all, task) == all.end())
      throw UsageError(fmt::format("--tasks: there is no task '{}'.{} The tasks are {}", task,
                                   did_you_mean(task, all), fmt::join(all, ", ")));
    if (std::ranges::find(tasks, task) == tasks.end()) tasks.push_back(task);
    begin = end + 1;
  }
  return tasks;
}

ExitCode run_suite(const SuiteArguments& arguments, const AskedSuite& suite, ContextModel& model) {
  for (const std::string* path : {&arguments.json, &arguments.answers, &arguments.export_file})
    check_output_file(*path);
  SuiteRun run(arguments, suite, model);
  if (!arguments.export_file.empty()) {
    write_output_file(arguments.export_file, run.prompts());
    return ExitCode::kOk;
  }
  Console console;
  const auto start = std::chrono::steady_clock::now();
  run.ask(console);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  if (arguments.json != "-" && arguments.answers != "-")
    print_output("{}", run.text(passed.count()));
  if (!arguments.json.empty()) write_json(arguments.json, run.json(passed.count()));
  if (!arguments.answers.empty()) write_output_file(arguments.answers, run.answers());
  return ExitCode::kOk;
}

}  // namespace fullbore

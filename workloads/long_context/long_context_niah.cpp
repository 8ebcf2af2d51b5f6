#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/data/text_file.h"
#include "workloads/long_context/heat_map.h"
#include "workloads/long_context/longcontext_command.h"
#include "workloads/long_context/measurements.h"
#include "workloads/long_context/needle_grid.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of this command

struct NiahArguments {
  std::string model;
  std::string task = "single";
  std::string lengths = "1K,2K,4K,8K,16K,32K";
  std::string depths = "0,10,25,50,75,90,100";
  int64_t trials = 10;
  int64_t needles = 0;
  int64_t asked = 0;
  int64_t hops = 4;
  bool control = false;
  uint64_t seed = 0;
  std::string haystack;
  double threshold = 0.8;
  std::string claimed;
  std::string json;
  std::string csv;
  std::string svg;
  std::string export_file;
  std::string score;
};

NeedleGridOptions grid_options(const NiahArguments& arguments, std::string_view haystack) {
  NeedleGridOptions options;
  options.task = *parse_needle_task(arguments.task);
  options.lengths = parse_lengths("--lengths", arguments.lengths);
  options.depths = parse_numbers("--depths", arguments.depths, 0, 100);
  for (double& depth : options.depths) depth /= 100;
  options.trials = arguments.trials;
  const int64_t usual = options.task == NeedleTask::single              ? 1
                        : options.task == NeedleTask::variable_tracking ? 2
                        : options.task == NeedleTask::multi_needle      ? 10
                                                                        : 4;
  options.needles = arguments.needles > 0 ? arguments.needles : usual;
  options.asked = arguments.asked;
  options.hops = arguments.hops;
  options.hide_answers = arguments.control;
  options.seed = arguments.seed;
  options.haystack = haystack;
  return options;
}

std::string depth_text(double depth) { return fmt::format("{:.4g} %", 100 * depth); }

/// A grid with all that is said of it.
struct NiahReport {
  const NiahArguments& arguments;
  const NeedleGridOptions& options;
  const ContextModel& model;
  const NeedleGrid& grid;
  double seconds = 0;
  std::vector<std::string> notes = {};  ///< further warnings

  std::vector<LengthAccuracy> lengths() const { return accuracy_by_length(grid); }
  std::vector<std::string> warnings() const;
  std::string about() const;
  HeatMap heat_map() const;
  nlohmann::ordered_json json() const;
  std::string csv() const;
  std::string text() const;
};

std::vector<std::string> NiahReport::warnings() const {
  std::vector<std::string> warnings = notes;
  const int64_t sight = arguments.score.empty() ? model.reader->context() : 0;
  if (sight > 0 && sight < options.lengths.back())
    warnings.push_back(fmt::format(
        "the model sees {} tokens at once; what is further back it cannot find", sight));
  const int64_t claimed =
      arguments.claimed.empty() ? 0 : parse_lengths("--claimed", arguments.claimed).front();
  if (claimed > 0 && std::ranges::find(options.lengths, claimed) == options.lengths.end())
    warnings.push_back(fmt::format("the claimed length of {} is none of the lengths", claimed));
  const RetrievalFlags flags =
      retrieval_flags(accuracy_by_cell(grid), claimed, options.task == NeedleTask::multi_needle);
  if (flags.below_at_claimed)
    warnings.push_back(fmt::format("{} at the claimed length of {}, below 80 %",
                                   percent_text(flags.below_at_claimed->accuracy), claimed));
  for (const RetrievalFlags::Sag& sag : flags.lost_in_the_middle)
    warnings.push_back(fmt::format("lost in the middle at {}: {} there, {} at the ends",
                                   length_text(sag.length), percent_text(sag.middle),
                                   percent_text(sag.ends)));
  if (flags.multi_needle_below_half) warnings.push_back("less than half of several needles found");
  return warnings;
}

std::string NiahReport::about() const {
  std::string text = std::string(needle_task_name(options.task));
  if (options.task == NeedleTask::variable_tracking)
    text += fmt::format(", {} chains of {} hops", options.needles, options.hops);
  else if (options.needles > 1)
    text += fmt::format(", {} needles", options.needles);
  if (options.asked > 0) text += fmt::format(", {} asked for", options.asked);
  if (options.hide_answers) text += ", control: needles left out";
  return fmt::format("{}; {} trials a cell, seed {}", text, options.trials, options.seed);
}

HeatMap NiahReport::heat_map() const {
  HeatMap map{"Needle in a haystack: " + model_text(model), about(), {}, {}, {}};
  std::vector<double> depths;
  for (const NeedleCell& cell : grid.cells) depths.push_back(cell.depth);
  std::ranges::sort(depths);
  const auto same = [](double a, double b) { return b - a < 1e-9; };
  depths.erase(std::unique(depths.begin(), depths.end(), same), depths.end());
  for (const int64_t length : options.lengths) map.columns.push_back(length_text(length));
  for (const double depth : depths) map.rows.push_back(depth_text(depth));
  map.cells.resize(map.rows.size() * map.columns.size());
  for (const NeedleCell& cell : grid.cells) {
    const auto row = static_cast<size_t>(
        std::ranges::find_if(depths, [&](double each) { return same(each, cell.depth); }) -
        depths.begin());
    const auto column = static_cast<size_t>(std::ranges::find(options.lengths, cell.length) -
                                            options.lengths.begin());
    const Interval interval = wilson_interval(cell.found, cell.asked);
    map.cells[row * map.columns.size() + column] = {
        cell.accuracy(),
        fmt::format("{} tokens, depth {}: {} of {} found, 95 % interval {:.2f} to {:.2f}",
                    cell.length, depth_text(cell.depth), cell.found, cell.asked, interval.low,
                    interval.high)};
  }
  return map;
}

nlohmann::ordered_json NiahReport::json() const {
  nlohmann::ordered_json json = {{"kind", "niah"}};
  json.update(model_json(model));
  json.update({{"task", needle_task_name(options.task)},
               {"control", options.hide_answers},
               {"seed", options.seed},
               {"trials", options.trials},
               {"needles", options.needles},
               {"asked", options.asked},
               {"haystack", arguments.haystack.empty() ? "words" : arguments.haystack}});
  if (options.task == NeedleTask::variable_tracking) json["hops"] = options.hops;
  for (const NeedleCell& cell : grid.cells) {
    const Interval interval = wilson_interval(cell.found, cell.asked);
    json["cells"].push_back({{"length", cell.length},
                             {"depth", cell.depth},
                             {"asked", cell.asked},
                             {"found", cell.found},
                             {"accuracy", cell.accuracy()},
                             {"low", interval.low},
                             {"high", interval.high}});
  }
  for (const LengthAccuracy& each : lengths())
    json["lengths"].push_back({{"length", each.length}, {"accuracy", each.accuracy}});
  json["usable_length"] = usable_length_json(lengths(), arguments.threshold);
  if (options.task == NeedleTask::single && !options.hide_answers)
    json["gate_16k"] = gate_name(needle_gate(lengths()));
  json["warnings"] = warnings();
  json["tokens"] = grid.tokens;
  json["seconds"] = seconds;
  return json;
}

std::string NiahReport::csv() const {
  std::string text = "length,depth,asked,found,accuracy,low,high\n";
  for (const NeedleCell& cell : grid.cells) {
    const Interval interval = wilson_interval(cell.found, cell.asked);
    text += fmt::format("{},{},{},{},{},{},{}\n", cell.length, cell.depth, cell.asked, cell.found,
                        cell.accuracy(), interval.low, interval.high);
  }
  return text;
}

std::string NiahReport::text() const {
  std::string text = "\n";
  for (const LengthAccuracy& each : lengths())
    text += fmt::format("{:<16}{} of needles found\n", length_text(each.length) + " tokens",
                        percent_text(each.accuracy));
  text += fmt::format("{:<16}{} at {}\n", "usable length",
                      usable_length_text(lengths(), arguments.threshold),
                      percent_text(arguments.threshold));
  if (options.task == NeedleTask::single && !options.hide_answers)
    text += fmt::format("{:<16}{} (above 80 % at 16K opens LongBench)\n", "gate of phase 1",
                        gate_name(needle_gate(lengths())));
  for (const std::string& warning : warnings())
    text += fmt::format("{:<16}{}\n", "warning", warning);
  if (arguments.score.empty())
    text += fmt::format("{:<16}{} tokens in {}, {}/s\n", "read",
                        count_text(static_cast<double>(grid.tokens)), duration_text(seconds),
                        count_text(static_cast<double>(grid.tokens) / std::max(seconds, 1e-9)));
  return text;
}

/// The prompts as JSON lines.
ExitCode export_prompts(const NiahArguments& arguments, const NeedleGridOptions& options,
                        const Tokenizer& tokenizer) {
  std::string lines;
  int64_t count = 0;
  for_each_needle_prompt(tokenizer, options, [&](const NeedlePrompt& prompt) {
    const nlohmann::ordered_json line = {
        {"id", prompt.id},         {"task", needle_task_name(options.task)},
        {"length", prompt.length}, {"depth", prompt.depth},
        {"prompt", prompt.prompt}, {"answer_characters", prompt.question.room}};
    lines += json_text(line, -1);
    ++count;
  });
  write_output_file(arguments.export_file, lines);
  if (arguments.export_file != "-")
    print_output("{}: {} prompts; score the answers by the same options and --score FILE\n",
                 arguments.export_file, count);
  return ExitCode::kOk;
}

/// Refuses answers to other prompts; tells how many have none.
NeedleGrid scored_grid(const NiahArguments& arguments, const NeedleGridOptions& options,
                       const Tokenizer& tokenizer, std::vector<std::string>& notes) {
  ScoredAnswers scored = score_needle_answers(tokenizer, options,
                                              read_needle_answers(arguments.score).take_or_throw());
  if (!scored.unknown.empty())
    throw DataError(fmt::format(
        "{}: {} answers are to no prompt of these options, such as '{}': score by the options and "
        "the MODEL that --export had",
        arguments.score, scored.unknown.size(), scored.unknown.front().substr(0, 80)));
  if (scored.missing > 0)
    notes.push_back(
        fmt::format("{} prompts have no answer; they count as not found", scored.missing));
  return std::move(scored.grid);
}

ExitCode run_niah(const NiahArguments& arguments) {
  for (const std::string* path :
       {&arguments.json, &arguments.csv, &arguments.svg, &arguments.export_file})
    check_output_file(*path);
  if (!arguments.export_file.empty() && !arguments.score.empty())
    throw UsageError("niah: --export writes prompts, --score reads answers to them: one at a time");
  std::string haystack;
  if (!arguments.haystack.empty()) haystack = read_text(arguments.haystack).take_or_throw();
  const NeedleGridOptions options = grid_options(arguments, haystack);
  ContextModel model = open_context_model(arguments.model, arguments.seed);
  if (!arguments.export_file.empty()) return export_prompts(arguments, options, *model.tokenizer);
  Console console;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> notes;
  NeedleGrid grid;
  if (arguments.score.empty()) {
    grid = run_needle_grid(*model.reader, *model.tokenizer, options,
                           token_progress(console, "asking for needles"));
  } else {
    grid = scored_grid(arguments, options, *model.tokenizer, notes);
    model.name = arguments.score;
    model.step = -1;
  }
  console.clear();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const NiahReport report{arguments, options, model, grid, passed.count(), notes};
  if (arguments.json != "-" && arguments.csv != "-" && arguments.svg != "-")
    print_output("{}{}", heat_map_text(report.heat_map(), Console(1).style()), report.text());
  if (!arguments.json.empty()) write_json(arguments.json, report.json());
  if (!arguments.csv.empty()) write_output_file(arguments.csv, report.csv());
  if (!arguments.svg.empty()) write_output_file(arguments.svg, heat_map_svg(report.heat_map()));
  return ExitCode::kOk;
}

}  // namespace

void add_niah_command(Command group) {
  Command command =
      group.add_subcommand("niah", "Needles in haystacks: what is found, by length and depth");
  auto arguments = std::make_shared<NiahArguments>();
  command
      .add_option("MODEL", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint; oracle: who reads the "
                  "needles off the text; random: who guesses letters")
      .required();
  command.add_option("--task", arguments->task, "What is hidden and asked for")
      .one_of(needle_task_names())
      .shows_default();
  command.add_option("--lengths", arguments->lengths, "Of the texts, in tokens").shows_default();
  command.add_option("--depths", arguments->depths, "Of the needle, in per cent").shows_default();
  command.add_option("--trials", arguments->trials, "Texts for each length and depth")
      .between(int64_t{1}, int64_t{1000000})
      .shows_default();
  command
      .add_option(
          "--needles", arguments->needles,
          "In each text; of variable-tracking: chains; 0: 10 of multi-needle, else 4, 2 chains")
      .between(int64_t{0}, int64_t{100000});
  command
      .add_option("--asked", arguments->asked, "Of multi-needle and multi-query: how many; 0: all")
      .between(int64_t{0}, int64_t{100000});
  command.add_option("--hops", arguments->hops, "Of variable-tracking: names behind the first")
      .between(int64_t{0}, int64_t{1000})
      .shows_default();
  command.add_flag("--control", arguments->control,
                   "Leave out what is asked for: what is found then was guessed");
  command
      .add_option("--seed", arguments->seed, "Of the texts: the same seed, the same for all models")
      .shows_default();
  command.add_option("--haystack", arguments->haystack,
                     "Text to hide needles in; by default sixteen frequent words at random");
  command.add_option("--threshold", arguments->threshold, "Of the usable length")
      .between(0.0, 1.0)
      .shows_default();
  command.add_option("--claimed", arguments->claimed,
                     "Length that the model is said to be good for");
  command.add_option("--json", arguments->json, "File to write all figures to; -: stdout");
  command.add_option("--csv", arguments->csv, "File to write the cells to; -: stdout");
  command.add_option("--svg", arguments->svg, "File to draw the heat map in; -: stdout");
  command.add_option("--export", arguments->export_file,
                     "File to write the prompts to, JSON lines, for models of others; -: stdout");
  command.add_option(
      "--score", arguments->score,
      "Answers to such prompts, JSON lines of id and answer, in place of MODEL's own");
  command.footer(R"(
A needle is a line "NAME: VALUE." of four and five capital letters; behind the text stands "NAME: ",
and the model writes on, always its likeliest token. An answer is right if it is the value, letter
by letter; of tasks that ask for several at once, each value found among what was written counts.
Intervals are Wilson's, of 95 %. A model that sees less than a text has the newest tokens.

  single             one needle at each depth
  multi-needle       evenly spaced; asked for one after another
  multi-key          one at each depth among needles of other names
  multi-value        all values of one name
  multi-query        several names at once
  variable-tracking  needles whose values are names: all that lead to a value

--export counts lengths in MODEL's tokens (oracle: characters), and asks several questions of a text
each by itself. An answer may begin with white space or quotes; what is missing is not found.

Example:
  fullbore longcontext niah runs/default-1 --lengths 64,128,256 --svg niah.svg
  fullbore longcontext niah oracle --lengths 4K --export prompts.jsonl   # then --score answers.jsonl
  fullbore longcontext niah runs/default-1 --control --json control.json
  fullbore longcontext niah oracle --task variable-tracking)");
  command.runs([arguments] { return run_niah(*arguments); });
}

}  // namespace fullbore

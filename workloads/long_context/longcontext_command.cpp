#include "workloads/long_context/longcontext_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of these commands

template <class Take>
void for_each_word(const std::string& text, const Take& take) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    take(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
}

template <class Number>
void ascend(std::vector<Number>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

std::string usable_text(const UsableLength& length) {
  if (length.length == 0) return "0: below it at the shortest";
  return fmt::format("{}{:.0f}", length.at_least ? "at least " : "", length.length);
}

}  // namespace

std::vector<int64_t> parse_lengths(const std::string& option, const std::string& text) {
  std::vector<int64_t> lengths;
  for_each_word(text, [&](std::string_view word) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string_view unit(end, static_cast<size_t>(word.data() + word.size() - end));
    const int64_t factor = unit.empty()                 ? 1
                           : unit == "K" || unit == "k" ? 1024
                           : unit == "M" || unit == "m" ? 1024 * 1024
                                                        : 0;
    constexpr int64_t kMost = int64_t{1} << 31;
    if (error != std::errc() || factor == 0 || number < 1 || number > kMost / factor)
      throw UsageError(fmt::format("{} {}: '{}' is no number of tokens, such as 4000 or 4K", option,
                                   text, word));
    lengths.push_back(number * factor);
  });
  ascend(lengths);
  return lengths;
}

std::vector<double> parse_numbers(const std::string& option, const std::string& text, double low,
                                  double high) {
  std::vector<double> numbers;
  for_each_word(text, [&](std::string_view word) {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() ||
        !(number >= low && number <= high))
      throw UsageError(
          fmt::format("{} {}: '{}' is no number from {} to {}", option, text, word, low, high));
    numbers.push_back(number);
  });
  ascend(numbers);
  return numbers;
}

std::string length_text(int64_t tokens) {
  return tokens % 1024 == 0 ? fmt::format("{}K", tokens / 1024) : fmt::format("{}", tokens);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::function<bool(int64_t, int64_t)> token_progress(Console& console, std::string doing) {
  const auto start = std::chrono::steady_clock::now();
  return [&console, start, doing = std::move(doing)](int64_t done, int64_t all) {
    if (!console.live_due()) return true;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const double rate = static_cast<double>(done) / std::max(passed.count(), 1e-9);
    const std::string left =
        done > 0 ? duration_text(static_cast<double>(all - done) / rate) + " left" : "";
    console.live(fmt::format("{}  {} of {} tokens  {}/s  {}", doing,
                             count_text(static_cast<double>(done)),
                             count_text(static_cast<double>(all)), count_text(rate), left));
    return true;
  };
}

std::string model_text(const ContextModel& model) {
  return model.step < 0 ? model.name : fmt::format("{} (step {})", model.name, model.step);
}

nlohmann::ordered_json model_json(const ContextModel& model) {
  nlohmann::ordered_json json = {{"model", model.name}};
  if (model.step >= 0) json["step"] = model.step;
  return json;
}

std::string usable_length_text(const std::vector<LengthAccuracy>& accuracies, double threshold) {
  const UsableLength length = usable_length(accuracies, threshold);
  if (length.length == 0 || length.at_least) return usable_text(length);
  return fmt::format("{}; {:.0f} by linear interpolation", usable_text(length),
                     usable_length(accuracies, threshold, Interpolation::linear).length);
}

nlohmann::ordered_json usable_length_json(const std::vector<LengthAccuracy>& accuracies,
                                          double threshold) {
  const UsableLength length = usable_length(accuracies, threshold);
  return {{"threshold", threshold},
          {"logarithmic", length.length},
          {"linear", usable_length(accuracies, threshold, Interpolation::linear).length},
          {"at_least", length.at_least}};
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  write_output_file(path, json_text(json));
}

void add_longcontext_command(Command root) {
  Command group = root.add_subcommand("longcontext", "How far back a language model can look");
  group.require_subcommand();
  add_niah_command(group);
  add_mqar_command(group);
  add_made_commands(group);
  add_benchmark_commands(group);
  add_usable_length_command(group);
  add_phases_command(group);
  group.footer(R"(
Needles and recall need no files: their examples follow from a seed, the same for every model.
They go in phases: who finds more than 80 % of single needles at 16K has cause to go on to
LongBench at 100K; who has an F1 above 0.6 there, to InfiniteBench.

Example:
  fullbore longcontext niah runs/default-1 --lengths 64,128,256 --svg niah.svg
  fullbore longcontext mqar runs/recall-1
  fullbore longcontext ruler runs/default-1 --lengths 2K,4K
  fullbore longcontext babilong runs/default-1 --background novel.txt
  fullbore longcontext longbench runs/default-1 longbench/*.jsonl
  fullbore longcontext infinitebench runs/default-1 passkey.jsonl --limit 8K
  fullbore longcontext usable-length niah.json
  fullbore longcontext phases niah.json longbench.json)");
}

}  // namespace fullbore

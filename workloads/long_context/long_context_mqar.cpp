#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "workloads/long_context/longcontext_command.h"
#include "workloads/long_context/recall_accuracy.h"

namespace fullbore {
namespace {

using namespace long_context;  // NOLINT: the words of this command

struct MqarArguments {
  std::string model;
  std::string sizes;
  int64_t vocabulary = 0;
  int64_t examples = 100;
  uint64_t seed = 0;
  std::string json;
};

/// Those of the literature that the model can be given.
std::vector<RecallSizes> usual_sizes(int64_t vocabulary, int64_t context) {
  std::vector<RecallSizes> sizes;
  for (const auto& [length, pairs] : std::vector<std::pair<int64_t, int64_t>>{
           {64, 4}, {128, 8}, {256, 16}, {256, 32}, {256, 64}, {512, 64}, {512, 128}, {1024, 256}})
    if ((context == 0 || length <= context) && pairs < vocabulary / 2)
      sizes.push_back({vocabulary, length, pairs});
  return sizes;
}

std::vector<RecallSizes> parse_sizes(const std::string& text, int64_t vocabulary) {
  std::vector<RecallSizes> all;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const char* const last = text.data() + end;
    RecallSizes sizes{.vocabulary = vocabulary};
    const auto [colon, error] = std::from_chars(text.data() + begin, last, sizes.length);
    bool good = error == std::errc() && colon != last && *colon == ':';
    if (good) {
      const auto [stop, wrong] = std::from_chars(colon + 1, last, sizes.pairs);
      good = wrong == std::errc() && stop == last;
    }
    if (!good)
      throw UsageError(fmt::format("--sizes {}: '{}' is no TOKENS:PAIRS, such as 64:4", text,
                                   text.substr(begin, end - begin)));
    check_recall_sizes(sizes);
    all.push_back(sizes);
    begin = end + 1;
  }
  return all;
}

ExitCode run_mqar(const MqarArguments& arguments) {
  check_output_file(arguments.json);
  const ContextModel model = open_context_model(arguments.model, arguments.seed);
  const int64_t tokens = model.tokenizer->vocabulary_size();
  const int64_t vocabulary = arguments.vocabulary > 0 ? arguments.vocabulary : tokens;
  if (vocabulary > tokens)
    throw UsageError(fmt::format("--vocabulary {}: the model has {} tokens", vocabulary, tokens));
  const int64_t context = model.reader->context();
  const std::vector<RecallSizes> all = arguments.sizes.empty()
                                           ? usual_sizes(vocabulary, context)
                                           : parse_sizes(arguments.sizes, vocabulary);
  if (all.empty())
    throw UsageError("mqar: the model sees less than 64 tokens, or has too few; set --sizes");
  int64_t work = 0;
  for (const RecallSizes& sizes : all) work += sizes.length * arguments.examples;
  Console console;
  const auto progress = token_progress(console, "asking for values");
  int64_t done = 0;
  nlohmann::ordered_json json = {{"kind", "mqar"}};
  json.update(model_json(model));
  json.update({{"vocabulary", vocabulary}, {"seed", arguments.seed}});
  const bool tells = arguments.json != "-";
  if (tells)
    print_output("{}\n{:>8} {:>8} {:>10}   95 % interval\n", model_text(model), "tokens", "pairs",
                 "accuracy");
  for (const RecallSizes& sizes : all) {
    const RecallAccuracy result =
        measure_recall(*model.reader, sizes, arguments.examples, arguments.seed,
                       [&](int64_t read) { return progress(done += read, work); });
    const Interval interval = wilson_interval(result.right, result.asked);
    const double accuracy = static_cast<double>(result.right) / static_cast<double>(result.asked);
    console.clear();
    if (tells)
      print_output("{:>8} {:>8} {:>10}   {} to {}{}\n", sizes.length, sizes.pairs,
                   percent_text(accuracy), percent_text(interval.low), percent_text(interval.high),
                   context > 0 && sizes.length > context ? "   longer than the model sees" : "");
    json["sizes"].push_back({{"length", sizes.length},
                             {"pairs", sizes.pairs},
                             {"asked", result.asked},
                             {"right", result.right},
                             {"accuracy", accuracy},
                             {"low", interval.low},
                             {"high", interval.high}});
  }
  if (!arguments.json.empty()) write_json(arguments.json, json);
  return ExitCode::kOk;
}

}  // namespace

void add_mqar_command(Command group) {
  Command command = group.add_subcommand(
      "mqar", "Multi-query associative recall: values of keys that came before");
  auto arguments = std::make_shared<MqarArguments>();
  command
      .add_option("MODEL", arguments->model,
                  "Run directory (its best checkpoint) or a checkpoint, of data.batching=mqar")
      .required();
  command.add_option("--sizes", arguments->sizes,
                     "TOKENS:PAIRS,...; by default from 64:4 to 1024:256, what the model can see");
  command
      .add_option("--vocabulary", arguments->vocabulary,
                  "Half of it keys, half values; 0: as many as the model has tokens")
      .between(int64_t{0}, int64_t{1} << 24);
  command.add_option("--examples", arguments->examples, "Of each size")
      .between(int64_t{1}, int64_t{10000000})
      .shows_default();
  command.add_option("--seed", arguments->seed, "Of the examples; none of them is trained on")
      .shows_default();
  command.add_option("--json", arguments->json, "File to write all figures to; -: stdout");
  command.footer(R"(
An example begins with pairs of a key and its value; behind them every key comes once again among
filler, and what counts is whether the likeliest token behind it is its value (Zoology,
arXiv:2312.04927). A model learns it from data.batching=mqar.

Example:
  fullbore train configs/mqar-hybrid.yaml
  fullbore longcontext mqar runs/mqar-1 --sizes 64:4,64:8,64:16 --json mqar.json)");
  command.runs([arguments] { return run_mqar(*arguments); });
}

}  // namespace fullbore

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/app/runs_command.h"
#include "fullbore/base/text.h"
#include "fullbore/lab/runs/run_difference.h"
#include "fullbore/lab/runs/run_folder.h"
#include "fullbore/monitor/console.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

struct CompareArguments {
  std::string a, b;
  int64_t tensors = 10;
  bool no_weights = false;
  bool json = false;
};

constexpr std::pair<const char*, const char*> kFigures[] = {
    {"steps", "steps"},
    {"training loss", "final_train_loss"},
    {"validation loss", "final_validation_loss"},
    {"best validation loss", "best_validation_loss"},
    {"tokens a second", "tokens_per_second"},
    {"samples a second", "samples_per_second"},
    {"of the machine's peak", "utilisation"},
    {"memory at most", "peak_bytes"},
    {"seconds to the first step", "seconds_to_first_step"}};

/// All that two runs are compared by.
struct Comparison {
  RunFolder a, b;
  std::vector<Difference> settings, makers, identities;
  std::vector<TensorDifference> weights;
  std::vector<std::string> problems;
};

Comparison compare(const CompareArguments& arguments) {
  Comparison all{look_at_run(arguments.a), look_at_run(arguments.b), {}, {}, {}, {}, {}};
  for (const RunFolder* run : {&all.a, &all.b})
    for (const std::string& problem : run->problems) all.problems.push_back(problem);
  all.settings = setting_differences(all.a, all.b);
  all.makers = maker_differences(all.a, all.b);
  Result<std::vector<Difference>> identities = identity_differences(all.a, all.b);
  if (!identities.ok()) {
    all.problems.push_back(identities.error());
    return all;
  }
  all.identities = std::move(identities).value();
  if (arguments.no_weights) return all;
  Console console;
  Result<std::vector<TensorDifference>> weights =
      weight_differences(all.a, all.b, [&](double share) {
        if (console.live_due())
          console.live(fmt::format("comparing weights: {:.0f} %", 100 * share));
      });
  console.clear();
  if (weights.ok())
    all.weights = std::move(weights).value();
  else
    all.problems.push_back(weights.error());
  return all;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json json_of(const Comparison& all) {
  const auto differences = [](const std::vector<Difference>& list) {
    Json json = Json::object();
    for (const Difference& each : list) json[each.what] = {each.a, each.b};
    return json;
  };
  Json json = {{"runs", {all.a.path, all.b.path}},
               {"settings", differences(all.settings)},
               {"made_by", differences(all.makers)},
               {"identity", differences(all.identities)}};
  for (const auto& [name, key] : kFigures)
    json["figures"][key] = {number(all.a.figure(key)), number(all.b.figure(key))};
  json["weights"] = Json::array();
  for (const TensorDifference& tensor : all.weights)
    json["weights"].push_back({{"name", tensor.name},
                               {"type", tensor.type},
                               {"equal", tensor.equal},
                               {"largest", number(tensor.largest)},
                               {"relative", number(tensor.relative)},
                               {"problem", tensor.problem}});
  json["problems"] = all.problems;
  return json;
}

void print_differences(const char* title, const std::vector<Difference>& list) {
  if (list.empty()) {
    print_output("{}: no difference\n", title);
    return;
  }
  size_t what = 0, first = 0;
  for (const Difference& each : list) {
    what = std::max(what, printable_name(each.what).size());
    first = std::max(first, std::min<size_t>(printable_name(each.a).size(), 40));
  }
  print_output("{}\n", title);
  for (const Difference& each : list)
    print_output("  {:{}}  {:{}}  {}\n", printable_name(each.what), what, printable_name(each.a),
                 first, printable_name(each.b));
}

void print_figures(const Comparison& all) {
  const auto text = [](double value) {
    return !std::isfinite(value) ? std::string("-")
           : value == std::nearbyint(value) && std::abs(value) < 1e15
               ? fmt::format("{:.0f}", value)
               : fmt::format("{:.6g}", value);
  };
  print_output("\nfigures\n");
  for (const auto& [name, key] : kFigures) {
    const double a = all.a.figure(key), b = all.b.figure(key);
    if (!std::isfinite(a) && !std::isfinite(b)) continue;
    print_output("  {:25}  {:>14}  {:>14}{}\n", name, text(a), text(b),
                 std::isfinite(a) && std::isfinite(b) && a != 0 && a != b
                     ? fmt::format("  {:+.2f} %", 100 * (b / a - 1))
                     : "");
  }
}

void print_weights(std::vector<TensorDifference> weights, int64_t most) {
  const auto same = static_cast<int64_t>(std::ranges::count_if(weights, &TensorDifference::equal));
  print_output("\nweights: {} of {} tensors have the same bits\n", same, weights.size());
  std::erase_if(weights, [](const TensorDifference& tensor) { return tensor.equal; });
  // What is not a number differs most of what can be compared; what cannot stands last.
  std::ranges::stable_sort(weights, std::greater(), [](const TensorDifference& tensor) {
    return !tensor.problem.empty()          ? -1.0
           : std::isfinite(tensor.relative) ? tensor.relative
                                            : std::numeric_limits<double>::max();
  });
  const size_t shown = std::min(weights.size(), static_cast<size_t>(most));
  size_t width = 6;
  for (size_t i = 0; i < shown; ++i)
    width = std::max(width, std::min<size_t>(printable_name(weights[i].name).size(), 50));
  if (shown > 0)
    print_output("  {:{}}  {:>10}  {:>10}  {}\n", "tensor", width, "relative", "largest", "type");
  for (size_t i = 0; i < shown; ++i) {
    const TensorDifference& tensor = weights[i];
    if (tensor.problem.empty())
      print_output("  {:{}}  {:>10.3g}  {:>10.3g}  {}\n", printable_name(tensor.name), width,
                   tensor.relative, tensor.largest, tensor.type);
    else
      print_output("  {:{}}  {}\n", printable_name(tensor.name), width,
                   printable_name(tensor.problem));
  }
  if (shown < weights.size()) print_output("  and {} more (--tensors)\n", weights.size() - shown);
}

ExitCode run_compare(const CompareArguments& arguments) {
  const Comparison all = compare(arguments);
  if (arguments.json) {
    write_output(json_text(json_of(all)));
    return ExitCode::kOk;
  }
  print_output("{} and {}\n\n", printable_name(all.a.path), printable_name(all.b.path));
  print_differences("settings", all.settings);
  print_differences("made by", all.makers);
  print_differences("data and model", all.identities);
  print_figures(all);
  if (!all.weights.empty()) print_weights(all.weights, arguments.tensors);
  for (const std::string& problem : all.problems) print_message("runs: {}\n", problem);
  return ExitCode::kOk;
}

}  // namespace

void add_runs_compare_command(Command runs) {
  Command command = runs.add_subcommand("compare", "Tell what differs between two runs");
  auto arguments = std::make_shared<CompareArguments>();
  command.add_option("A", arguments->a, "Folder of a run").required();
  command.add_option("B", arguments->b, "Folder of another").required();
  command
      .add_option("--tensors", arguments->tensors, "Weights to print, those that differ most first")
      .between(int64_t{1}, int64_t{1'000'000})
      .shows_default();
  command.add_flag("--no-weights", arguments->no_weights,
                   "Leave the weights out: large ones take a while to read");
  command.add_flag("--json", arguments->json, "Print JSON, with every tensor");
  command.footer(
      "\nSettings, build and machine, data and model, figures, and the weights of both last "
      "checkpoints,\n"
      "tensor by tensor. relative: the root of the summed squares of the differences over that of "
      "A.\n"
      "Whether B is as good as A is for `fullbore lab gate` to say.\n"
      "\nExample:\n"
      "  fullbore runs compare runs/default-1 runs/default-2");
  command.runs([arguments] { return run_compare(*arguments); });
}

}  // namespace fullbore

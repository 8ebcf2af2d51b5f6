#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/commands.h"
#include "apps/output.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/csv.h"

namespace fullbore {
namespace {

struct MetricsArguments {
  std::string run;
  std::string kind;
  bool csv = false;
};

ExitCode run_metrics(const MetricsArguments& arguments) {
  std::string path = arguments.run;
  if (std::filesystem::is_directory(path)) path += "/metrics.jsonl";
  std::vector<nlohmann::ordered_json> records = read_json_lines(path).take_or_throw();
  std::vector<std::string> kinds;
  for (const auto& record : records) {
    const std::string kind = record.value("kind", "");
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  if (!arguments.kind.empty()) {
    if (std::find(kinds.begin(), kinds.end(), arguments.kind) == kinds.end())
      throw UsageError(
          fmt::format("metrics: {} holds nothing of kind '{}'.{} It holds {}.", path,
                      arguments.kind, did_you_mean(arguments.kind, kinds),
                      kinds.empty() ? "nothing" : fmt::format("{}", fmt::join(kinds, ", "))));
    std::erase_if(records, [&](const auto& r) { return r.value("kind", "") != arguments.kind; });
  }
  std::string text;
  if (arguments.csv) {
    text = to_csv(records);
  } else {
    for (const auto& record : records)
      text += record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }
  write_output(text);
  return ExitCode::kOk;
}

}  // namespace

void add_metrics_command(Command root) {
  Command command = root.add_subcommand("metrics", "Print the metrics of a run, as CSV too");
  auto arguments = std::make_shared<MetricsArguments>();
  command.add_option("RUN", arguments->run, "Run directory, or a file of JSON lines").required();
  command.add_option("--kind", arguments->kind, "Only these lines: train, evaluation");
  command.add_flag("--csv", arguments->csv, "Comma-separated values with a header line");
  command.footer(
      "\nExample:\n"
      "  fullbore metrics runs/default-1 --csv --kind train > train.csv\n"
      "  fullbore metrics runs/default-1 --kind evaluation");
  command.runs([arguments] { return run_metrics(*arguments); });
}

}  // namespace fullbore

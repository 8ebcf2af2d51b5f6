#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "fullbore/app/commands.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/csv.h"
#include "fullbore/monitor/summary_file.h"

namespace fullbore {
namespace {

struct MetricsArguments {
  std::string run;
  std::string kind;
  bool csv = false;
};

/// Lines that the run's summary tells of; -1: nobody knows.
int64_t written_lines(const std::string& run) {
  if (!std::filesystem::exists(run + "/summary.json")) return -1;
  const Result<SummaryFile> summary = read_summary(run + "/summary.json");
  if (!summary.ok()) {
    print_message("metrics: {}\n", summary.error());
    return -1;
  }
  const auto lines = summary.value().json.find("metric_lines");
  return lines == summary.value().json.end() || !lines->is_number_unsigned()
             ? -1
             : lines->get<int64_t>();
}

/// Tells what is wrong with the file; false if lines that were written are lost.
bool tell_problems(const std::string& path, const JsonLinesFile& file, bool is_run,
                   int64_t written) {
  for (const std::string& problem : file.problems) print_message("metrics: {}\n", problem);
  if (const int64_t more = file.problem_count - std::ssize(file.problems); more > 0)
    print_message("metrics: {}: and {} more such lines\n", path, more);
  if (file.is_torn)
    print_message(
        "metrics: {}: its last line has no end and is left out: it is being written, "
        "or was cut off\n",
        path);
  if (file.lines < written)
    print_message("metrics: {}: it is cut off: {} of {} lines are there\n", path, file.lines,
                  written);
  if (file.unchecked > 0 && is_run)
    print_message("metrics: {}: {} lines have no checksum: an older version wrote them\n", path,
                  file.unchecked);
  return file.problem_count == 0 && file.lines >= written;
}

ExitCode run_metrics(const MetricsArguments& arguments) {
  std::string path = arguments.run;
  int64_t written = -1;
  const bool is_run = std::filesystem::is_directory(path);
  if (is_run) {
    written = written_lines(path);
    path += "/metrics.jsonl";
  }
  JsonLinesFile file = read_json_lines(path).take_or_throw();
  const bool is_whole = tell_problems(path, file, is_run, written);
  std::vector<nlohmann::ordered_json>& records = file.records;
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
    for (const auto& record : records) text += json_text(record, -1);
  }
  print_output("{}", text);
  return is_whole ? ExitCode::kOk : ExitCode::kData;
}

}  // namespace

void add_metrics_command(Command root) {
  Command command = root.add_subcommand("metrics", "Print the metrics of a run, as CSV too");
  auto arguments = std::make_shared<MetricsArguments>();
  command.add_option("RUN", arguments->run, "Run directory, or a file of JSON lines").required();
  command.add_option("--kind", arguments->kind, "Only these lines: train, evaluation");
  command.add_flag("--csv", arguments->csv, "Comma-separated values with a header line");
  command.footer(
      "\nLines that were changed, are missing or are repeated are told, the others printed: exit "
      "code 3.\n"
      "\nExample:\n"
      "  fullbore metrics runs/default-1 --csv --kind train > train.csv\n"
      "  fullbore metrics runs/default-1 --kind evaluation");
  command.runs([arguments] { return run_metrics(*arguments); });
}

}  // namespace fullbore

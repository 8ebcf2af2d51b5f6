#include "fullbore/app/runs_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/commands.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/lab/runs/run_folder.h"
#include "fullbore/lab/runs/run_page.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/text_chart.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

std::string date_text(std::filesystem::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(system));
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local);
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json json_of(const RunFolder& run) {
  Json json = {{"path", run.path}, {"status", run.status}, {"steps", run.steps()}};
  json["model"] = run.config ? Json(run.config->model.name) : Json();
  json["steps_planned"] = run.config ? Json(run.config->train.steps) : Json();
  for (const char* name : {"final_train_loss", "final_validation_loss", "best_validation_loss",
                           "tokens_per_second", "samples_per_second", "wall_seconds"})
    json[name] = number(run.figure(name));
  json["bytes"] = run.bytes;
  json["problems"] = run.problems;
  return json;
}

struct ListArguments {
  std::string folder = "runs";
  std::string sort = "name";
  bool json = false;
};

void sort_runs(std::vector<RunFolder>& runs, const std::string& by) {
  if (by == "time")
    std::ranges::stable_sort(runs, std::greater(),
                             [](const RunFolder& run) { return run.changed; });
  if (by == "loss")
    std::ranges::stable_sort(runs, {}, [](const RunFolder& run) {
      const double loss = run.figure("best_validation_loss");
      return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
    });
}

ExitCode run_list(const ListArguments& arguments) {
  std::vector<RunFolder> runs;
  for (const std::string& path : runs_in(arguments.folder)) runs.push_back(look_at_run(path));
  sort_runs(runs, arguments.sort);
  if (arguments.json) {
    Json json = Json::array();
    for (const RunFolder& run : runs) json.push_back(json_of(run));
    write_output(json_text(json));
    return ExitCode::kOk;
  }
  if (runs.empty()) {
    print_output("No runs in {}.\n", printable_name(arguments.folder));
    return ExitCode::kOk;
  }
  size_t width = 4;
  for (const RunFolder& run : runs)
    width = std::max(width, std::min<size_t>(printable_name(run.name).size(), 60));
  print_output("{:{}}  {:11}  {:>15}  {:>9}  {:>9}  {}\n", "run", width, "status", "steps",
               "best loss", "size", "last word");
  for (const RunFolder& run : runs) {
    const double loss = run.figure("best_validation_loss");
    print_output("{:{}}  {:11}  {:>15}  {:>9}  {:>9}  {}\n", printable_name(run.name), width,
                 run.status,
                 run.config ? fmt::format("{}/{}", run.steps(), run.config->train.steps)
                            : fmt::format("{}", run.steps()),
                 std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "-",
                 bytes_text(static_cast<double>(run.bytes)), date_text(run.changed));
  }
  return ExitCode::kOk;
}

void add_list(Command runs) {
  Command command = runs.add_subcommand("list", "List the runs of a folder");
  auto arguments = std::make_shared<ListArguments>();
  command.add_option("FOLDER", arguments->folder, "Where runs lie").shows_default();
  command.add_option("--sort", arguments->sort, "time: the latest first; loss: the best first")
      .one_of({"name", "time", "loss"})
      .shows_default();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "\nrunning: a process works on it now; killed: nobody does, and nobody said how it ended.\n"
      "\nExample:\n"
      "  fullbore runs list\n"
      "  fullbore runs list experiments --sort loss");
  command.runs([arguments] { return run_list(*arguments); });
}

struct ShowArguments {
  std::string run;
  std::string html;
  bool force = false;
  bool json = false;
};

RunCurves curves_of(const RunFolder& run, std::vector<std::string>& problems) {
  Result<RunCurves> curves = read_run_curves(run.path);
  if (!curves.ok()) {
    problems.push_back(curves.error());
    return {};
  }
  std::ranges::copy(curves.value().problems, std::back_inserter(problems));
  return std::move(curves).value();
}

void show_losses(const RunCurves& curves) {
  std::vector<ChartCurve> drawn;
  for (const char* metric : {"loss", "validation_loss"})
    if (curves.curves.contains(metric)) drawn.push_back(chart_curve(curves, metric, metric));
  if (drawn.empty()) return;
  const Console console(1);
  write_output("\n" + curves_text({"", "step", ""}, drawn,
                                  {.columns = std::min(console.width(), 100), .rows = 11},
                                  console.terminal() ? console.style() : TextStyle()));
}

ExitCode run_show(const ShowArguments& arguments) {
  if (!arguments.html.empty()) {
    check_output_file(arguments.html);
    refuse_existing(arguments.html, arguments.force);
  }
  RunFolder run = look_at_run(arguments.run);
  const RunCurves curves = curves_of(run, run.problems);
  if (!arguments.html.empty()) {
    write_output_file(arguments.html, run_page(run, curves));
    return ExitCode::kOk;
  }
  if (arguments.json) {
    Json json = json_of(run);
    json["summary"] = run.summary;
    for (const auto& [key, value] : chosen_settings(run)) json["settings"][key] = value;
    json["metrics"] = curves.names();
    write_output(json_text(json));
    return ExitCode::kOk;
  }
  print_output("{}\n\n{}", printable_name(run.path), rows_text(run_facts_text(run)));
  print_output("\nSettings other than the defaults\n\n{}", rows_text(chosen_settings(run)));
  show_losses(curves);
  for (const std::string& problem : run.problems) print_message("runs: {}\n", problem);
  return ExitCode::kOk;
}

void add_show(Command runs) {
  Command command =
      runs.add_subcommand("show", "Show a run: how far it came, its settings, its curves");
  auto arguments = std::make_shared<ShowArguments>();
  command.add_option("RUN", arguments->run, "Folder of the run").required();
  command.add_option("--html", arguments->html,
                     "Write a page with all curves to this file instead");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "\nThe page needs no other file and no network.\n"
      "\nExample:\n"
      "  fullbore runs show runs/default-1\n"
      "  fullbore runs show runs/default-1 --html default-1.html");
  command.runs([arguments] { return run_show(*arguments); });
}

struct RemoveArguments {
  std::vector<std::string> runs;
  bool yes = false;
};

ExitCode run_remove(const RemoveArguments& arguments) {
  std::vector<RunFolder> runs;
  for (const std::string& path : arguments.runs) runs.push_back(look_at_run(path));
  for (const RunFolder& run : runs)
    if (run.status == "running")
      throw DataError(fmt::format("{} is in use by another fullbore process", run.path));
  for (const RunFolder& run : runs) {
    if (arguments.yes) remove_run(run.path).take_or_throw();
    print_output("{} {}: {} steps, {}\n", arguments.yes ? "removed" : "would remove", run.path,
                 run.steps(), bytes_text(static_cast<double>(run.bytes)));
  }
  if (!arguments.yes) print_output("Nothing was removed: add --yes.\n");
  return ExitCode::kOk;
}

void add_remove(Command runs) {
  Command command = runs.add_subcommand("remove", "Remove runs with all that is in their folders");
  auto arguments = std::make_shared<RemoveArguments>();
  command.add_option("RUN", arguments->runs, "Folders of runs").required();
  command.add_flag("--yes", arguments->yes, "Do it; otherwise it is told what would go");
  command.footer(
      "\nA folder that holds no run, a link, or a run that a process works on is refused.\n"
      "\nExample:\n"
      "  fullbore runs remove runs/default-1 runs/default-2\n"
      "  fullbore runs remove runs/default-1 --yes");
  command.runs([arguments] { return run_remove(*arguments); });
}

}  // namespace

std::string rows_text(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : rows)
    text += fmt::format("{:{}}  {}\n", name, width, printable_name(value));
  return text;
}

void add_runs_command(Command root) {
  Command command = root.add_subcommand("runs", "List, show, compare, plot and remove runs");
  command.require_subcommand();
  add_list(command);
  add_show(command);
  add_runs_compare_command(command);
  add_runs_plot_command(command);
  add_remove(command);
  command.footer(
      "\nExample:\n"
      "  fullbore runs list\n"
      "  fullbore runs compare runs/default-1 runs/default-2");
}

}  // namespace fullbore

#include "fullbore/app/app.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "fullbore/app/commands.h"
#include "fullbore/app/exit_codes.h"
#include "fullbore/app/invocation.h"
#include "fullbore/app/output.h"
#include "fullbore/app/own_commands.h"
#include "fullbore/app/version.h"
#include "fullbore/base/mapped_faults.h"
#include "fullbore/base/program_name.h"
#include "fullbore/train/default_job.h"

namespace fullbore {
namespace {

constexpr const char* kAbout =
    "Fullbore trains neural networks as one compiled program: traced once, planned to the byte,\n"
    "replayed a million times.";

constexpr const char* kFooter = R"(
Example:
  fullbore train configs/default.yaml data.path=play.txt
  fullbore generate runs/default-1 --prompt "ROMEO:"

Each command has a --help of its own.

Exit codes:
)";

// Of a program that brings its own model.
constexpr const char* kOwnFooter = R"(
Example:
  fullbore train
  fullbore train train.steps=500 run.dir=runs/longer
  fullbore train runs/longer --resume train.steps=900
  fullbore eval runs/longer
  fullbore export runs/longer -o weights.safetensors

A command that takes a configuration file means the program's own job without one; a file changes it.
Each command has a --help of its own.

Exit codes:
)";

/// What was printed before a failure still comes before its message.
void flush_what_goes() {
  try {
    flush_output();
  } catch (const OutputError& error) {
    if (!error.pipe_closed()) print_message("fullbore: {}\n", error.what());
  }
}

int exit_with(const std::string& program, ExitCode code, const std::string& message) {
  flush_what_goes();
  print_message("{}: {}\n", program, message);
  return static_cast<int>(code);
}

/// A program with a job of its own goes by its own name.
std::string name_of(int argc, const char* const* argv) {
  if (default_job() == nullptr || argc < 1) return "fullbore";
  return std::filesystem::path(argv[0]).filename().string();
}

ExitCode run(CommandParser& parser, int argc, const char* const* argv) {
  if (default_job() == nullptr || argc < 2) return parser.run(argc, argv);
  const std::vector<std::string> words =
      with_default_job(parser.root().describe(), {argv + 1, argv + argc});
  std::vector<const char*> completed = {argv[0]};
  for (const std::string& word : words) completed.push_back(word.c_str());
  return parser.run(static_cast<int>(completed.size()), completed.data());
}

}  // namespace

namespace {

/// Commands for models of texts, say, are none of a program whose one model is another.
bool has_use_for(const Workload& workload) {
  return default_job() == nullptr || !workload.keys.models.empty();
}

}  // namespace

void add_commands(Command root) {
  root.require_subcommand();
  root.footer((default_job() == nullptr ? kFooter : kOwnFooter) + exit_codes_text());
  add_train_command(root);
  add_eval_command(root);
  for (const Workload& workload : workloads())
    if (workload.add_commands && has_use_for(workload)) workload.add_commands(root);
  add_runs_command(root);
  add_metrics_command(root);
  add_watch_command(root);
  add_replay_step_command(root);
  add_plan_command(root);
  add_bench_command(root);
  add_profile_command(root);
  add_diagnose_command(root);
  add_record_command(root);
  add_lab_command(root);
  add_doctor_command(root);
  add_ops_command(root);
  add_passes_command(root);
  add_config_command(root);
  add_completion_command(root);
  add_manual_command(root);
}

int app(int argc, const char* const* argv, std::span<const Workload> own) {
  prepare_standard_streams();
  report_mapped_faults();
  keep_command_line(argc, argv);
  const std::string name = name_of(argc, argv);
  set_program_name(name);
  try {
    for (const Workload& workload : own) register_workload(workload);
    CommandParser parser(name, kAbout, version_text);
    add_commands(parser.root());
    const ExitCode code = run(parser, argc, argv);
    // A command that failed has said why, and its code stays.
    code == ExitCode::kOk ? flush_output() : flush_what_goes();
    return static_cast<int>(code);
  } catch (const OutputError& error) {
    if (error.pipe_closed()) end_by_closed_pipe();
    print_message("{}: {}\n", name, error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    return exit_with(name, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return exit_with(name, ExitCode::kMemory, "out of memory");
  } catch (const std::exception& error) {
    return exit_with(name, ExitCode::kInternal, fmt::format("a bug of ours: {}", error.what()));
  }
}

}  // namespace fullbore

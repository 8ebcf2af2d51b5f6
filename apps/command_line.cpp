#include "apps/command_line.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "apps/commands.h"
#include "apps/version.h"

namespace fullbore {
namespace {

constexpr const char* kAbout =
    "Fullbore trains neural networks as one compiled program: traced once, planned to the byte,\n"
    "replayed a million times.";

constexpr const char* kFooter = R"(
Example:
  fullbore train configs/gpt-shakespeare-cpu.yaml data.path=play.txt
  fullbore generate runs/gpt-1 --prompt "ROMEO:"

Each command has a --help of its own.

Exit codes:
   0  done
   1  a bug of fullbore
   2  usage: command line, configuration, shapes
   3  data: a file that is missing, malformed, or of another model
   4  numerical: the loss or the gradients stopped being finite
   5  memory: the job does not fit
  75  stopped by a signal after saving; run again with --resume)";

int exit_with(ExitCode code, const std::string& message) {
  fmt::print(stderr, "fullbore: {}\n", message);
  return static_cast<int>(code);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  try {
    CommandParser parser("fullbore", kAbout, version_text);
    Command root = parser.root();
    root.require_subcommand();
    root.footer(kFooter);
    add_train_command(root);
    add_eval_command(root);
    add_predict_command(root);
    add_generate_command(root);
    add_export_command(root);
    add_data_command(root);
    add_peptide_command(root);
    add_longcontext_command(root);
    add_metrics_command(root);
    add_record_command(root);
    add_replay_step_command(root);
    add_plan_command(root);
    add_bench_command(root);
    add_profile_command(root);
    add_doctor_command(root);
    add_ops_command(root);
    add_passes_command(root);
    add_config_command(root);
    add_completion_command(root);
    add_manual_command(root);
    return static_cast<int>(parser.run(argc, argv));
  } catch (const Error& error) {
    return exit_with(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return exit_with(ExitCode::kMemory, "out of memory");
  } catch (const std::exception& error) {
    return exit_with(ExitCode::kInternal, fmt::format("a bug of ours: {}", error.what()));
  }
}

}  // namespace fullbore

#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "fullbore/base/error.h"

namespace fullbore {

/// What the arguments ask for, run once they have all been read.
using ChosenCommand = std::function<ExitCode()>;

/// Each adds one subcommand, with its options and a --help that teaches by example; `chosen` is set
/// when the arguments name it.
void add_train_command(CLI::App& app, ChosenCommand& chosen);
void add_eval_command(CLI::App& app, ChosenCommand& chosen);
void add_generate_command(CLI::App& app, ChosenCommand& chosen);
void add_export_command(CLI::App& app, ChosenCommand& chosen);
void add_data_command(CLI::App& app, ChosenCommand& chosen);
void add_metrics_command(CLI::App& app, ChosenCommand& chosen);
void add_replay_step_command(CLI::App& app, ChosenCommand& chosen);
void add_plan_command(CLI::App& app, ChosenCommand& chosen);
void add_bench_command(CLI::App& app, ChosenCommand& chosen);
void add_profile_command(CLI::App& app, ChosenCommand& chosen);
void add_doctor_command(CLI::App& app, ChosenCommand& chosen);
void add_ops_command(CLI::App& app, ChosenCommand& chosen);
void add_passes_command(CLI::App& app, ChosenCommand& chosen);
void add_config_command(CLI::App& app, ChosenCommand& chosen);
/// The two below print what follows from all the others; `app` must outlive what is chosen.
void add_completion_command(CLI::App& app, ChosenCommand& chosen);
void add_manual_command(CLI::App& app, ChosenCommand& chosen);

}  // namespace fullbore

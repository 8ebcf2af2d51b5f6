#pragma once
#include "fullbore/app/command.h"

namespace fullbore {

/// Each adds one command of the program, with its options and a --help that teaches by example.
void add_train_command(Command root);
void add_eval_command(Command root);
void add_metrics_command(Command root);
void add_runs_command(Command root);
void add_watch_command(Command root);
void add_replay_step_command(Command root);
void add_plan_command(Command root);
void add_bench_command(Command root);
void add_profile_command(Command root);
void add_diagnose_command(Command root);
void add_record_command(Command root);
void add_lab_command(Command root);
void add_doctor_command(Command root);
void add_ops_command(Command root);
void add_passes_command(Command root);
void add_config_command(Command root);
/// The two below print what follows from all the others.
void add_completion_command(Command root);
void add_manual_command(Command root);

/// All of the above, those of workloads (workload.h), and the help of the program itself.
void add_commands(Command root);

}  // namespace fullbore

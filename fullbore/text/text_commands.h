#pragma once
#include "fullbore/app/command.h"
#include "fullbore/app/workload.h"

namespace fullbore {

/// Commands for models of texts; each adds one.
void add_generate_command(Command root);
void add_export_command(Command root);
void add_data_command(Command root);
/// All of them.
void add_text_commands(Command root);
/// How `eval` measures models of texts.
EvalKind add_text_eval(Command eval);

}  // namespace fullbore

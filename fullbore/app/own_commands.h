#pragma once
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/app/command_tree.h"
#include "fullbore/app/own_model.h"
#include "fullbore/app/workload.h"

namespace fullbore {

/// `eval` of a model of one's own: loss and metrics over what it holds out.
EvalKind own_eval(const OwnModel& model);
/// `export`: the weights of a run as one safetensors file.
void add_own_export_command(Command root);

/// The words of a command line, with kDefaultJob put in where a command that takes a configuration file is given none:
/// nothing stands there, or a setting does. `words`: those behind the program's name.
std::vector<std::string> with_default_job(const CommandDescription& root,
                                          std::vector<std::string> words);

}  // namespace fullbore

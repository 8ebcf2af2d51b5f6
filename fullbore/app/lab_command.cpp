#include "fullbore/app/commands.h"
#include "fullbore/app/lab_commands.h"

namespace fullbore {

void add_lab_command(Command root) {
  Command lab =
      root.add_subcommand("lab", "Experiments of several runs: switches, quality, searches");
  lab.require_subcommand();
  add_lab_ablate_command(lab);
  add_lab_gate_command(lab);
  add_lab_sweep_command(lab);
  add_lab_tune_command(lab);
}

}  // namespace fullbore

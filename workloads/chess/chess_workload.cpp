#include "fullbore/app/workload.h"
#include "workloads/chess/chess_commands.h"

namespace fullbore {
namespace {

const WorkloadRegistrar kChess{{.name = "chess", .add_commands = add_chess_command}};

}  // namespace
}  // namespace fullbore

#include "tests/support/job.h"

namespace fullbore::chess {
namespace {

// Chess is learned by the models of others: tests have one that is there whichever workloads are.
const bool kTiny = use_tiny_model();

}  // namespace
}  // namespace fullbore::chess

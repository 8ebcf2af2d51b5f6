#include "tests/support/job.h"

namespace fullbore {
namespace {

// What is tested works on any model of texts: on one that is there whichever workloads are.
const bool kTiny = use_tiny_model();

}  // namespace
}  // namespace fullbore
